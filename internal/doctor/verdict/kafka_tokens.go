package verdict

import (
	"errors"
	"fmt"

	"github.com/IBM/sarama"

	"github.com/heddle-stream/heddle/internal/kafka"
)

// TokenBroker is what a broker said of delegation tokens of its own.
type TokenBroker struct {
	Addr string
	Err  error
}

// KafkaTokens judges whether a job on YARN can log in by delegation tokens of Kafka's. demanded: it does not run without; else agents do that need a login of
// their own then.
func KafkaTokens(all []TokenBroker, demanded bool) Verdict {
	const without = "; or name a keytab by kafka.sasl.kerberos.keytab, with kafka.delegation-token off, which agents then get"
	var vs []Verdict
	for _, b := range all {
		switch {
		case errors.Is(b.Err, sarama.ErrDelegationTokenAuthDisabled):
			vs = append(vs, fail("kafka-tokens-off", "have the same delegation.token.secret.key put into the properties of all brokers and controllers, and them restarted"+without, "%v", b.Err))
		case errors.Is(b.Err, kafka.ErrNoTokenLogin):
			vs = append(vs, fail("kafka-tokens-scram", "have SCRAM-SHA-256 put into sasl.enabled.mechanisms of the listener beside GSSAPI (no users of SCRAM are needed), and "+
				"listener.name.NAME.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required; with it"+without, "%v", b.Err))
		case errors.Is(b.Err, sarama.ErrDelegationTokenRequestNotAllowed):
			vs = append(vs, fail("kafka-tokens-refused", "log in by GSSAPI, at a listener that wants it", "%v", b.Err))
		case b.Err != nil:
			vs = append(vs, fail("kafka-tokens-failed", "look whether the broker runs, and at its log", "%v", b.Err))
		}
	}
	if len(vs) == 0 {
		return pass("%s: a job gets a delegation token for its agents to log in by, for which nobody needs an ACL", count(len(all), "broker"))
	}
	v := All(vs)
	if !demanded {
		v.Status = Warn
		v.Means += ": agents would need ticket caches of their own on their hosts"
	}
	return v
}

// KafkaTokenBar judges why a token that is demanded is not to be had whatever brokers say.
func KafkaTokenBar(err error) Verdict {
	return fail("kafka-tokens-barred", "set kafka.delegation-token to off, or mend what it says", "%s", fmt.Sprint(err))
}
