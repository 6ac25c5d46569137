package jobspec

import (
	"slices"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/jobspec/row"
)

// TestHeaderWithPolicy has the policy on the source, which fails, not on what takes the header out.
func TestHeaderWithPolicy(t *testing.T) {
	const file = "id;n\na;1\nb;many\nc;3\n"
	for policy, wantBad := range map[string]string{"skip": "", "{ dead_letter: bad }": "source|b;many"} {
		sinks := "  out: { from: source, file: { path: DIR/out, format: { csv: { columns: [id, n] } } } }\n"
		if wantBad != "" {
			sinks += "  bad: { file: { path: DIR/bad, format: { text: \"{step}|{record}\" } } }\n"
		}
		got, err := runJob(t, `
name: header
source:
  file: { path: DIR/in.csv, format: { csv: { delimiter: ";", header: true } } }
  fields: { id: string, n: int }
  on_error: `+policy+`
sinks:
`+sinks, map[string]string{"in.csv": file})
		if err != nil {
			t.Fatalf("on_error: %s: %v", policy, err)
		}
		want(t, got, "out", "a,1\nc,3")
		if wantBad != "" {
			want(t, got, "bad", wantBad)
		}
	}
}

func TestOverwrite(t *testing.T) {
	const job = `
name: again
source: { generator: { count: 3, record: { n: n } }, parallelism: 1 }
sink: { file: { path: DIR/, format: json%s }, parallelism: 1 }
`
	old := map[string]string{"part-00000": "old\n"}
	if _, err := runJob(t, strings.Replace(job, "%s", "", 1), old); err == nil || !strings.Contains(err.Error(), "overwrite: true") {
		t.Errorf("without overwrite: %v", err)
	}
	if _, err := runJob(t, strings.Replace(job, "%s", ", overwrite: true", 1), old); err != nil {
		t.Errorf("with overwrite: %v", err)
	}
}

// TestSchemaTypes compares the schema's types of fields with those that rows have.
func TestSchemaTypes(t *testing.T) {
	v, s := loadSchema(t)
	var types []any
	for _, typ := range row.Types {
		types = append(types, string(typ))
	}
	fields := v.defs["source"].(map[string]any)["properties"].(map[string]any)["fields"].(map[string]any)
	if got := fields["additionalProperties"].(map[string]any)["enum"].([]any); !slices.Equal(got, types) {
		t.Errorf("the schema has the types %v, rows have %v", got, types)
	}
	const source = "source: { generator: { record: { a: n } } }\nsink: { discard: {} }\n"
	for text, ok := range map[string]bool{
		"name: a\nsource: { file: { path: x, format: json }, fields: { a: float } }\nsink: { discard: {} }\n":          true,
		"name: a\nsource: { file: { path: x, format: json }, fields: { a: flaot } }\nsink: { discard: {} }\n":          false,
		"name: a\nsteps: [{ window: { tumbling: 1d, aggregate: { n: count() } } }]\n" + source:                         true,
		"name: a\nsteps: [{ window: { tumbling: 1d12h30m, aggregate: { n: count() } } }]\n" + source:                   true,
		"name: a\nsteps: [{ window: { tumbling: \"\", aggregate: { n: count() } } }]\n" + source:                       false,
		"name: a\nsteps: [{ window: { tumbling: 0s, aggregate: { n: count() } } }]\n" + source:                         false,
		"name: a\nsteps: [{ window: { tumbling: 1s, lateness: 0s, aggregate: { n: count() } } }]\n" + source:           true,
		"name: a\nsteps: [{ dedupe: { by: [a], within: 0ms } }]\n" + source:                                            false,
		"name: a\nsteps: [{ window: { sliding: 1m, slide: 0.0s, aggregate: { n: count() } } }]\n" + source:             false,
		"name: a\nsource: { generator: { record: { a: n } }, max_delay: 0s, idle_after: 1s }\nsink: { discard: {} }\n": true,
	} {
		if errs := v.check(s, jsonOf(t, []byte(text)), ""); (len(errs) == 0) != ok {
			t.Errorf("the schema judges\n%s: %q", text, errs)
		}
		if _, err := Load("job.yaml", []byte(text), Options{}); (err == nil) != ok {
			t.Errorf("the loader judges\n%s: %v", text, err)
		}
	}
}

// TestDeadLetterNamesStep has the step by the name of the file, whatever operators it is made of.
func TestDeadLetterNamesStep(t *testing.T) {
	got, err := runJob(t, `
name: letters
source: { generator: { count: 2, record: { n: n, s: string(n) } } }
steps:
  - key_by: s
  - window: { global: true, aggregate: { sum: sum(10 % n) } }
    name: byn
    on_error: { dead_letter: bad }
sinks:
  out: { from: byn, file: { path: DIR/out, format: { text: "{s}: {sum}" } } }
  bad: { file: { path: DIR/bad, format: { text: "{step}" } } }
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	want(t, got, "out", "1: 0")
	want(t, got, "bad", "byn")
}

// TestRecordsAreShownWithNames has what fails with the names of its columns, in errors and dead letters.
func TestRecordsAreShownWithNames(t *testing.T) {
	for _, step := range []string{"filter: 10 % n == 0", "set: { x: 10 % n }", "route: { a: 10 % n == 0 }", "flat_map: { x: '[10 % n]' }"} {
		from := "it"
		if strings.HasPrefix(step, "route") {
			from = "a"
		}
		const job = `
name: shown
source: { generator: { count: 1, record: { n: n, s: string(n), t: from_millis(n) } } }
steps:
  - STEP
    name: it
`
		text := strings.Replace(job, "STEP", step, 1)
		_, err := runJob(t, text+"sinks: { out: { from: "+from+", file: { path: DIR/out, format: json } } }", nil)
		if err == nil || !strings.Contains(err.Error(), `record: {"n":0,"s":"0","t":"1970-01-01T00:00:00Z"}`) {
			t.Errorf("%s: %v", step, err)
		}
		got, err := runJob(t, text+`    on_error: { dead_letter: bad }
sinks:
  out: { from: `+from+`, file: { path: DIR/out, format: json } }
  bad: { file: { path: DIR/bad, format: { text: "{step} {record}" } } }
`, nil)
		if err != nil {
			t.Fatal(err)
		}
		want(t, got, "bad", `it {"n":0,"s":"0","t":"1970-01-01T00:00:00Z"}`)
	}
}
