package grants

import (
	"fmt"
	"slices"
	"strings"
)

// KafkaACLs writes the grants of Kafka as lines of its tool kafka-acls. bootstrap stands for the configured cluster.
func KafkaACLs(gs []Grant, user, bootstrap string) []string {
	var out []string
	for _, g := range gs {
		option := ""
		switch g.Kind {
		case Token:
			out = append(out, fmt.Sprintf("# %s logs in by delegation tokens of its own, for which there is no ACL: brokers need delegation.token.secret.key, and SCRAM-SHA-256 at the listener", commented("User:"+user)))
			continue
		case Topic:
			option = "--topic"
		case Group:
			option = "--group"
		case Transact:
			option = "--transactional-id"
		default:
			continue
		}
		at := bootstrap
		if g.Cluster != "" {
			at = g.Cluster
		}
		if at == "" {
			at = "BROKERS"
		}
		line := fmt.Sprintf("kafka-acls.sh --bootstrap-server %s --command-config admin.properties --add --allow-principal %s", quoted(at), quoted("User:"+user))
		for _, op := range g.Ops {
			line += " --operation " + op
		}
		name := g.Name
		if g.Match == Prefixed && name != "" {
			line += " --resource-pattern-type prefixed"
		} else if name == "" {
			name = "*" // they have no beginning in common
		}
		out = append(out, line+" "+option+" "+quoted(name))
	}
	return out
}

// commented is text within a comment of a shell's.
func commented(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return '?'
		}
		return r
	}, s)
}

// quoted is a word for a shell.
func quoted(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-/:,@", r)
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Services are the names of Ranger's services; those of Cloudera's by default.
type Services struct{ HDFS, YARN, Kafka string }

// policy is a policy of Ranger's, as its export and import have it.
type policy struct {
	Service     string              `json:"service"`
	ServiceType string              `json:"serviceType"`
	Name        string              `json:"name"`
	Description string              `json:"description"`
	PolicyType  int                 `json:"policyType"`
	Enabled     bool                `json:"isEnabled"`
	Audit       bool                `json:"isAuditEnabled"`
	Resources   map[string]resource `json:"resources"`
	Items       []item              `json:"policyItems"`
}

type resource struct {
	Values    []string `json:"values"`
	Excludes  bool     `json:"isExcludes"`
	Recursive bool     `json:"isRecursive"`
}

type item struct {
	Accesses      []access `json:"accesses"`
	Users         []string `json:"users"`
	Groups        []string `json:"groups"`
	DelegateAdmin bool     `json:"delegateAdmin"`
}

type access struct {
	Type    string `json:"type"`
	Allowed bool   `json:"isAllowed"`
}

// Ranger is what Ranger imports: a policy for each right on a path, queue, topic or group.
func Ranger(gs []Grant, job, user, kafkaUser string, s Services) any {
	policies := []policy{}
	for _, g := range gs {
		p := policy{ServiceType: "kafka", Service: s.Kafka, Description: g.Why, Enabled: true, Audit: true, Name: fmt.Sprintf("heddle %s: %s %s", job, g.Kind, g.Name)}
		who, name := kafkaUser, g.Name
		var types []string
		kind := ""
		switch g.Kind {
		case Path:
			p.ServiceType, p.Service, kind, who, types = "hdfs", s.HDFS, "path", user, g.Ops
		case Queue:
			if strings.HasPrefix(g.Name, "(") {
				continue // the cluster's rules choose it
			}
			p.ServiceType, p.Service, kind, who, types = "yarn", s.YARN, "queue", user, g.Ops
		case Topic:
			kind, types = "topic", rangerOps(g.Ops)
		case Group:
			kind, types = "consumergroup", rangerOps(g.Ops)
		case Transact:
			kind, types = "transactionalid", rangerOps(g.Ops)
		default:
			continue
		}
		if g.Match == Prefixed {
			name += "*"
		}
		p.Resources = map[string]resource{kind: {Values: []string{name}, Recursive: g.Match == Below}}
		i := item{Users: []string{who}, Groups: []string{}}
		for _, t := range types {
			i.Accesses = append(i.Accesses, access{t, true})
		}
		p.Items = []item{i}
		policies = append(policies, p)
	}
	return map[string]any{"metaDataInfo": map[string]any{"Host name": "", "Ranger apache version": ""}, "policies": policies}
}

// rangerOps are Kafka's operations by Ranger's names.
func rangerOps(ops []string) []string {
	var out []string
	for _, op := range ops {
		name, ok := map[string]string{"Read": "consume", "Write": "publish", "Describe": "describe"}[op]
		if ok && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
