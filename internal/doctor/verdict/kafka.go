package verdict

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/IBM/sarama"

	"github.com/heddle-stream/heddle/internal/kafka"
)

// Brokers judges a try to speak with a Kafka cluster.
func Brokers(brokers []string, count int, mechanism string, err error) Verdict {
	if err == nil {
		text := fmt.Sprintf("%s answers for a cluster of %d", strings.Join(brokers, ", "), count)
		if mechanism != "" {
			text += ", and takes our login by " + mechanism
		}
		return pass("%s", text)
	}
	text := err.Error()
	low := strings.ToLower(text)
	if e, ok := errors.AsType[*kafka.KerberosError](err); ok {
		v := kafkaLogin(e.Err)
		v.Means = text
		return v
	}
	switch {
	case strings.Contains(low, "sasl mechanism"):
		return fail("kafka-mechanism", "set kafka.sasl.mechanism to one that the listener offers (sasl.enabled.mechanisms of the broker)", "%s", text)
	case errors.Is(err, sarama.ErrSASLAuthenticationFailed), strings.Contains(low, "sasl authentication"), strings.Contains(low, "authentication failed"):
		return fail("kafka-login", "check kafka.sasl.user and kafka.sasl.password, or the token or principal", "%s", text)
	case strings.Contains(low, "x509"), strings.Contains(low, "cannot negotiate tls"), strings.Contains(low, "tls:"):
		return fail("kafka-tls", "check kafka.tls.enabled, kafka.tls.ca-file or .truststore, and that the listener speaks TLS", "%s", text)
	case strings.Contains(low, "hung up"), strings.Contains(low, "eof"):
		fix := "the listener wants another security protocol: compare kafka.tls.enabled and kafka.sasl.mechanism with it"
		if mechanism != "" {
			fix += "; some brokers also refuse a wrong user or password so"
		}
		return fail("kafka-hangs-up", fix, "%s", text)
	case strings.Contains(low, "no such host"):
		return fail("kafka-dns", "check kafka.brokers, or have the name put into DNS", "%s", text)
	}
	return fail("kafka-unreachable", "check kafka.brokers, that the brokers run, and that their ports can be reached from here", "%s", text)
}

// kafkaLogin judges why Kerberos gives us nothing to show to a broker.
func kafkaLogin(err error) Verdict {
	if v, ok := serviceTicket(err); ok {
		return v
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "cannot read the keytab"):
		return fail("keytab-missing", "check kafka.sasl.kerberos.keytab, and that you may read the file", "%s", text)
	case strings.Contains(text, "there is no ticket cache"):
		return fail("ticket-missing", "run kinit, or name a keytab by kafka.sasl.kerberos.keytab", "%s", text)
	}
	return fail("kafka-kerberos", "see kafka.sasl.kerberos.* in `heddle config`", "%s", text)
}

// Listener is what came of connecting to a broker under the name that it advertises.
type Listener struct {
	ID   int32
	Addr string
	DNS  error // its name can't be resolved
	Err  error
}

// Listeners judges the advertised names of brokers.
func Listeners(all []Listener) Verdict {
	var vs []Verdict
	for _, l := range all {
		switch {
		case l.DNS != nil:
			vs = append(vs, fail("kafka-advertised", fmt.Sprintf("have advertised.listeners of broker %d name a host that is known here and on the cluster's nodes, or put the name into DNS", l.ID),
				"broker %d advertises %s, which can't be resolved here: %v", l.ID, l.Addr, l.DNS))
		case l.Err != nil:
			vs = append(vs, fail("kafka-advertised", fmt.Sprintf("have the port opened, or advertised.listeners of broker %d mended", l.ID), "broker %d advertises %s: %v", l.ID, l.Addr, l.Err))
		}
	}
	if len(vs) > 0 {
		return All(vs)
	}
	return pass("%s, all by the names that they advertise", count(len(all), "broker"))
}

// Topic is what came of asking about a topic.
type Topic struct {
	Name        string
	Read, Write bool
	kafka.AllowedTopic
}

// Topics judges the topics of a job. principal is who needs to be let.
func Topics(all []Topic, principal string) Verdict {
	var vs []Verdict
	grant := fmt.Sprintf("ask for it: heddle plan --grants --format kafka-acls lists what %s needs", principal)
	for _, t := range all {
		switch {
		case errors.Is(t.Err, kafka.ErrDenied):
			vs = append(vs, fail("topic-denied", grant, "%s may not even see topic %s, if there is one", principal, t.Name))
		case errors.Is(t.Err, kafka.ErrUnknownTopic):
			vs = append(vs, fail("topic-missing", "check its name in the job, or have it made; where ACLs hide topics, ask for DESCRIBE on it", "there is no topic %s, or %s may not see it", t.Name, principal))
		case t.Err != nil:
			vs = append(vs, fail("topic-failed", "ask the cluster's administrators, with this text", "topic %s: %v", t.Name, t.Err))
		case !t.Told:
			vs = append(vs, Verdict{Warn, "topic-access-unknown", fmt.Sprintf("topic %s has %s; the broker does not tell what we may do", t.Name, count(t.Partitions, "partition")), ""})
		case t.Read && !t.Allowed.Has(kafka.OpRead):
			vs = append(vs, fail("topic-denied", grant, "%s may not read topic %s", principal, t.Name))
		case t.Write && !t.Allowed.Has(kafka.OpWrite):
			vs = append(vs, fail("topic-denied", grant, "%s may not write topic %s", principal, t.Name))
		default:
			vs = append(vs, pass("%s (%s)", t.Name, count(t.Partitions, "partition")))
		}
	}
	return All(vs)
}

// Group is what came of asking about a consumer group.
type Group struct {
	Name  string
	Write bool // offsets are committed to it
	kafka.AllowedGroup
	Fault error // the question failed
}

// Groups judges the consumer groups of a job.
func Groups(all []Group, principal string) Verdict {
	var vs []Verdict
	grant := fmt.Sprintf("ask for it: heddle plan --grants --format kafka-acls lists what %s needs", principal)
	for _, g := range all {
		switch {
		case g.Fault != nil:
			vs = append(vs, fail("group-failed", "look whether the group's coordinator runs", "group %s: %v", g.Name, g.Fault))
		case errors.Is(g.Err, kafka.ErrDenied):
			vs = append(vs, fail("group-denied", grant, "%s may not use group %s", principal, g.Name))
		case g.Err != nil && !errors.Is(g.Err, sarama.ErrGroupIDNotFound):
			vs = append(vs, fail("group-failed", "ask the cluster's administrators, with this text", "group %s: %v", g.Name, g.Err))
		case g.Told && g.Write && !g.Allowed.Has(kafka.OpRead):
			vs = append(vs, fail("group-denied", grant, "%s may not commit offsets to group %s", principal, g.Name))
		case g.Write && g.Members > 0:
			vs = append(vs, Verdict{Warn, "group-in-use", fmt.Sprintf("group %s has %s", g.Name, count(g.Members, "member")), "end that consumer, or name another group: offsets can't be committed to a group with members"})
		default:
			vs = append(vs, pass("%s", g.Name))
		}
	}
	return All(vs)
}

// Collector judges the endpoint for traces and metrics.
func Collector(endpoint string, err error) Verdict {
	if err == nil {
		return pass("%s accepts connections", endpoint)
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return warn("otlp-plain", "write http:// in place of https://, or have the collector speak TLS on this port", "%s does not speak TLS: %v", endpoint, err)
	}
	low := strings.ToLower(err.Error())
	if strings.Contains(low, "x509") || strings.Contains(low, "tls:") {
		return warn("otlp-tls", "have the collector's authority trusted by this host, and on the cluster's nodes", "%s: %v", endpoint, err)
	}
	return warn("otlp-closed", "start the collector, or change trace.endpoint or OTEL_EXPORTER_OTLP_ENDPOINT: jobs run without it, and their traces and metrics are lost", "%s: %v", endpoint, err)
}
