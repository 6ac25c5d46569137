package conf

import (
	"fmt"
	"strings"
)

// sections are the headings of the generated pages, by the first word of an option's name.
var sections = map[string]string{
	"target": "Job", "parallelism": "Job", "max-parallelism": "Job", "chaining": "Job", "flush-timeout": "Job",
	"timezone": "Job", "timeout": "Job", "state-dir": "Job",
	"agents": "Agents and slots", "agent": "Agents and slots", "slot": "Agents and slots",
	"appmaster": "ApplicationMaster", "web": "ApplicationMaster",
	"exchange": "Exchange of records between agents",
	"kafka":    "Kafka",
	"trace":    "Traces and metrics", "metrics": "Traces and metrics",
	"log": "Logs", "env": "Environment",
}

// section is the heading that o belongs under.
func (o Option) section() string {
	word, _, _ := strings.Cut(o.Name, ".")
	if s, ok := sections[word]; ok {
		return s
	}
	return word
}

// AppendDefaultFile appends the commented configuration file: every option with its meaning and default.
func (r *Registry) AppendDefaultFile(b []byte) []byte {
	b = append(b, `# Heddle's options with their defaults. Uncomment a line to change it.
#
# A file is read from --config, else $HEDDLE_CONF, else $HEDDLE_CONF_DIR/heddle.yaml, else
# `+SystemFile+` and then ~/.config/heddle/heddle.yaml, whose values win.
# The environment (HEDDLE_EXCHANGE_TLS for exchange.tls) wins over files, a flag (--exchange.tls) over both.
# "heddle config" shows every value and where it came from.
# Names may be nested: "exchange: {tls: true}" is the same as "exchange.tls: true".
#
# Generated from the registry in package conf: change it there, then run "go test ./conf -update".
`...)
	last := ""
	for _, o := range r.options {
		if s := o.section(); s != last {
			b = fmt.Appendf(b, "\n# --- %s ---\n", s)
			last = s
		}
		b = append(b, '\n')
		for _, line := range wrap(o.Doc+" "+o.note(), 100) {
			b = fmt.Appendf(b, "# %s\n", line)
		}
		b = fmt.Appendf(b, "#%s: %s\n", o.Name, yamlDefault(o))
	}
	return b
}

func yamlDefault(o Option) string {
	if o.Default == "" {
		return `""`
	}
	if o.Type == String || o.Type == List {
		return quote(o.Default)
	}
	return o.Default
}

// note says what the doc of o does not: its form, unit and whether it is a secret.
func (o Option) note() string {
	form := o.Form()
	if o.Unit != "" {
		form += ", in " + o.Unit
	}
	if o.Secret {
		form += "; a secret"
	}
	return "(" + form + ")"
}

// AppendReference appends the reference page in Markdown.
func (r *Registry) AppendReference(b []byte) []byte {
	b = append(b, `# Configuration

Every option can be set, later ones winning, in

1. a file: `+"`--config FILE`, else `$HEDDLE_CONF`, else `$HEDDLE_CONF_DIR/heddle.yaml`, else `"+SystemFile+"` and then `heddle.yaml` in `$XDG_CONFIG_HOME/heddle` or `~/.config/heddle`"+` (both are read; the user's values win);
2. the environment: `+"`HEDDLE_EXCHANGE_TLS=true`"+`;
3. the command line: `+"`--exchange.tls`, `--exchange.tls=true` or `-D exchange.tls=true`"+`.

A name that no option has is an error, in each of them. Secrets are refused on the command line, where every
user of the host could read them. `+"`heddle config`"+` prints each value and where it came from.

In a file, names may be nested or dotted:

`+"```yaml"+`
agents: 3
exchange:
  tls: true
  memory: 128MiB
kafka.brokers: [broker-1:9092, broker-2:9092]
`+"```"+`

Options that a program's own connectors declare (`+"`heddle.DeclareOption`"+`) are known to that program alone;
keep them in a file of its own (`+"`--config`"+`).

<!-- Generated from the registry in package conf: change it there, then run "go test ./conf -update". -->
`...)
	last := ""
	for _, o := range r.options {
		if s := o.section(); s != last {
			b = fmt.Appendf(b, "\n## %s\n\n| option | default | meaning |\n| --- | --- | --- |\n", strings.ToUpper(s[:1])+s[1:])
			last = s
		}
		def := "unset"
		if o.Default != "" {
			def = "`" + o.Default + "`"
		}
		b = fmt.Appendf(b, "| `%s` | %s | %s |\n", o.Name, def, strings.ReplaceAll(o.Doc+" *"+o.note()+"*", "|", `\|`))
	}
	return b
}

// wrap breaks text at spaces into lines of at most width bytes, where words allow it.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > width:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
