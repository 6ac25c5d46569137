package jobspec

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/jobspec/strict"
)

const docsFile = "../../docs/yaml-jobs.md"

// sections are the titles of the tables of the reference.
var sections = map[string]string{
	"jobFile": "The file", "source": "Sources", "kafkaSource": "kafka, as a source", "kafkaPoint": "Positions: start and stop", "fileSource": "file, as a source",
	"generator": "generator", "csvRead": "csv, reading", "eventTimeDetail": "event_time", "step": "Steps", "window": "window", "dedupe": "dedupe",
	"deadLetter": "on_error", "sink": "Sinks", "kafkaSink": "kafka, as a sink", "fileSink": "file, as a sink", "stdoutSink": "stdout",
	"sinkFormatOptions": "Formats, writing", "csvFormat": "csv, writing", "schemaFormat": "avro and protobuf, writing",
}

// between replaces what stands between a marker and the next end.
func between(t *testing.T, text, marker, with string) string {
	t.Helper()
	begin := "<!-- " + marker + " -->\n"
	before, rest, ok := strings.Cut(text, begin)
	_, after, closed := strings.Cut(rest, "<!-- end -->")
	if !ok || !closed {
		t.Fatalf("%s has no marker %q", docsFile, begin)
	}
	return before + begin + with + "<!-- end -->" + after
}

// TestDocs keeps the reference what the definitions say. -update writes it.
func TestDocs(t *testing.T) {
	have := string(read(t, docsFile))
	functions := "| function | |\n| --- | --- |\n"
	for _, f := range ownFunctions {
		call, what, _ := strings.Cut(f.doc, ": ")
		functions += fmt.Sprintf("| `%s` | %s |\n", call, what)
	}
	want := between(t, have, "functions", functions)
	want = between(t, want, "reference", strict.Reference(reflect.TypeFor[jobFile](), func(name string) string { return sections[name] }))
	if *update {
		if err := os.WriteFile(docsFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if have != want {
		t.Errorf("%s is not current: run go test ./internal/jobspec -update", docsFile)
	}
	for name, title := range sections {
		if !strings.Contains(want, "\n### "+title+"\n") {
			t.Errorf("there is no definition %s", name)
		}
	}
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

func TestDocsExamples(t *testing.T) {
	blocks := yamlBlock.FindAllStringSubmatch(string(read(t, docsFile)), -1)
	if len(blocks) < 2 {
		t.Fatalf("%s has %d examples", docsFile, len(blocks))
	}
	for _, b := range blocks {
		if _, err := Load("docs", []byte(b[1]), Options{}); err != nil {
			t.Errorf("an example is refused:\n%v", err)
		}
	}
}
