// Package grants lists what a job needs to be let to do, and writes it down as those who grant it want to have it: for Kafka as arguments of kafka-acls, for Ranger as policies.
package grants

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/schemaregistry"
)

// Kind is what a grant is about.
type Kind string

// Kinds of grants, in the order of lists.
const (
	Principal Kind = "principal" // who needs the rest
	Path      Kind = "hdfs-path"
	LocalPath Kind = "local-path" // on each host that runs the job
	Queue     Kind = "queue"      // of YARN
	Topic     Kind = "topic"
	Group     Kind = "group"
	Transact  Kind = "transactional-id"
	Token     Kind = "delegation-token" // of Kafka's, by its owner
	Subject   Kind = "subject"          // of a schema registry
	Port      Kind = "port"             // to be reached
)

// How a name is meant.
const (
	Literal  = "literal"
	Prefixed = "prefixed"
	Below    = "recursive" // a folder with all in it
)

// Grant is a right that is needed.
type Grant struct {
	Kind    Kind     `json:"kind"`
	Name    string   `json:"name"`
	Match   string   `json:"match"` // literal, prefixed or recursive
	Ops     []string `json:"operations,omitempty"`
	Cluster string   `json:"cluster,omitempty"` // brokers, or a file system
	Why     string   `json:"why"`
}

// Input is what grants follow from.
type Input struct {
	User      string   // towards Hadoop
	Login     string   // principal of Kerberos; "": none
	KafkaUser string   // as Kafka's ACLs name it; "": User
	TokensAt  []string // clusters of Kafka that agents log in to by delegation tokens, as Need.At has them
	YARN      bool     // it runs on YARN
	Queue     string
	Staging   string // folder in HDFS
	HDFS      string // URI of the default file system
	Needs     []flow.Need
	Registry  string  // kind of the schema registry: confluent or cloudera
	Ports     []Grant // of kind Port
	Others    []Grant // principals of servers that are spoken to
}

// List returns everything that is needed, each once.
func List(in Input) []Grant {
	var out []Grant
	who := Grant{Kind: Principal, Name: in.User, Match: Literal, Why: "runs the job"}
	if in.Login != "" {
		who.Name, who.Why = in.Login, "runs the job, as user "+in.User+" of Hadoop"
	}
	if who.Name != "" {
		out = append(out, who)
	}
	out = append(out, in.Others...)
	if in.YARN {
		out = append(out, Grant{Path, in.Staging, Below, []string{"read", "write", "execute"}, in.HDFS, "staging: the program and the application's files"})
		q := Grant{Queue, in.Queue, Literal, []string{"submit-app"}, "", "runs there"}
		if in.Queue == "" {
			q.Name, q.Why = "(chosen by the cluster's rules)", "no queue is named"
		}
		out = append(out, q)
	}
	for _, n := range in.Needs {
		out = append(out, ofNeed(n, in)...)
	}
	for _, at := range in.TokensAt {
		owner := in.KafkaUser
		if owner == "" {
			owner = in.User
		}
		out = append(out, Grant{Token, owner, Literal, []string{"Create"}, at, "its agents log in by it: brokers need delegation.token.secret.key, and SCRAM-SHA-256 beside GSSAPI; for a token of one's own nobody needs an ACL"})
	}
	out = append(out, in.Ports...)
	order := []Kind{Principal, Path, LocalPath, Queue, Topic, Group, Transact, Token, Subject, Port}
	slices.SortStableFunc(out, func(a, b Grant) int { return slices.Index(order, a.Kind) - slices.Index(order, b.Kind) })
	return slices.CompactFunc(out, func(a, b Grant) bool { return a.same(b) })
}

func (g Grant) same(o Grant) bool {
	return g.Kind == o.Kind && g.Name == o.Name && g.Match == o.Match && g.Cluster == o.Cluster && slices.Equal(g.Ops, o.Ops)
}

// ofNeed turns what a connector needs into grants.
func ofNeed(n flow.Need, in Input) []Grant {
	switch n.Kind {
	case flow.NeedTopic:
		g := Grant{Topic, n.Name, Literal, []string{"Read", "Describe"}, n.At, "source"}
		if n.Write {
			g.Ops, g.Why = []string{"Write", "Describe"}, "sink"
		}
		if n.Pattern {
			g.Name, g.Match, g.Why = prefixOf(n.Name), Prefixed, "source of the topics that match "+n.Name
		}
		return []Grant{g}
	case flow.NeedGroup:
		if n.Write {
			return []Grant{{Group, n.Name, Literal, []string{"Read", "Describe"}, n.At, "commits offsets"}}
		}
		return []Grant{{Group, n.Name, Literal, []string{"Describe"}, n.At, "begins where the group is"}}
	case flow.NeedSubject:
		return subjects(n, in)
	case flow.NeedPath:
		return []Grant{ofPath(n)}
	}
	return nil
}

// subjects are those that a need names, or else those of the topics that are read, by the registries' convention.
func subjects(n flow.Need, in Input) (out []Grant) {
	ops := []string{"read"}
	if n.Write {
		ops = append(ops, "write")
	}
	if n.Name != "" {
		return []Grant{{Subject, n.Name, Literal, ops, "", "schema to write by"}}
	}
	for _, t := range in.Needs {
		if t.Kind == flow.NeedTopic && t.Read && !t.Pattern {
			out = append(out, Grant{Subject, schemaregistry.SubjectOf(t.Name, in.Registry), Literal, ops, "", "schemas of what is read"})
		}
	}
	return out
}

func ofPath(n flow.Need) Grant {
	g := Grant{LocalPath, n.Name, Literal, []string{"read", "execute"}, "", "source"}
	if rest, ok := strings.CutPrefix(n.Name, "hdfs://"); ok {
		g.Kind = Path
		authority, name, _ := strings.Cut(rest, "/")
		g.Name = path.Clean("/" + name)
		if authority != "" {
			g.Cluster = "hdfs://" + authority
		}
	}
	switch {
	case n.Write:
		g.Match, g.Ops, g.Why = Below, []string{"read", "write", "execute"}, "sink"
	case n.Pattern:
		g.Name, g.Match = path.Dir(g.Name[:strings.IndexAny(g.Name, "*?[")]+"x"), Below
	}
	return g
}

// prefixOf is what all names begin with that match a regular expression; "" if they have nothing in common.
func prefixOf(expr string) string {
	re, err := regexp.Compile("^(?:" + expr + ")")
	if err != nil {
		return ""
	}
	literal, err := regexp.Compile(strings.TrimPrefix(re.String(), "^"))
	if err != nil {
		return ""
	}
	p, _ := literal.LiteralPrefix()
	return p
}
