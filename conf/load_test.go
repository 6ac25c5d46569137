package conf

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func testRegistry(t testing.TB) *Registry {
	t.Helper()
	r, err := NewRegistry(
		Option{Name: "agents", Type: Int, Default: "2", Min: "1"},
		Option{Name: "agents.max", Type: Int, Default: "0"},
		Option{Name: "exchange.tls", Type: Bool, Default: "false"},
		Option{Name: "exchange.memory", Type: Bytes, Default: "64MiB"},
		Option{Name: "flush-timeout", Type: Duration, Default: "20ms"},
		Option{Name: "kafka.brokers", Type: List},
		Option{Name: "kafka.password", Type: String, Secret: true},
		Option{Name: "name", Type: String},
	)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestLayers(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "heddle.yaml")
	write(t, file, "agents: 3\nexchange: {tls: true, memory: 1MiB}\nkafka.brokers: [a:1, b:2]\nagents.max: 9\n")
	c, err := Load(testRegistry(t), Sources{
		Environ: []string{"HEDDLE_CONF_DIR=" + dir, "HEDDLE_EXCHANGE_MEMORY=2MiB", "HEDDLE_AGENTS_MAX=8", "PATH=/bin"},
		Flags:   []Flag{{"agents.max", "7", "--agents.max"}, {"agents.max", "6", "-D agents.max"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, text, origin string }{
		{"agents", "3", "file " + file + ":1:1"},
		{"exchange.tls", "true", "file " + file + ":2:12"},
		{"exchange.memory", "2MiB", "environment HEDDLE_EXCHANGE_MEMORY"},
		{"kafka.brokers", "a:1,b:2", "file " + file + ":3:1"},
		{"agents.max", "6", "flag -D agents.max"},
		{"flush-timeout", "20ms", "default"},
		{"name", "", "default"},
	} {
		v, ok := c.Value(tt.name)
		if !ok || v.Text != tt.text || v.Origin() != tt.origin {
			t.Errorf("%s = %q from %q, want %q from %q", tt.name, v.Text, v.Origin(), tt.text, tt.origin)
		}
	}
	if got := c.List("kafka.brokers"); len(got) != 2 || c.Int("agents") != 3 || !c.Bool("exchange.tls") ||
		c.Bytes("exchange.memory") != 2<<20 || c.Duration("flush-timeout").Milliseconds() != 20 || c.Text("name") != "" {
		t.Errorf("typed getters disagree with the texts: %v", got)
	}
}

func TestUserFileWins(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, ".config", "heddle")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "heddle.yaml"), "agents: 5\n")
	c, err := Load(testRegistry(t), Sources{Environ: []string{"HOME=" + home}})
	if err != nil || c.Int("agents") != 5 {
		t.Fatalf("Load: agents %v, error %v, want 5", c, err)
	}
	c, err = Load(testRegistry(t), Sources{Environ: []string{"HOME=" + home, "XDG_CONFIG_HOME=" + t.TempDir()}})
	if err != nil || c.Int("agents") != 2 {
		t.Fatalf("Load with XDG_CONFIG_HOME elsewhere: error %v, want the default", err)
	}
}

func TestLoadErrors(t *testing.T) {
	tests := []struct {
		name, yaml string
		environ    []string
		flags      []Flag
		want       []string // all must be in the message
	}{
		{"unknown key", "exchange:\n  tsl: true\n", nil, nil, []string{`f.yaml:2:3: unknown option "exchange.tsl"; did you mean "exchange.tls"?`}},
		{"two at once", "agent: 1\nagents: x\n", nil, nil, []string{`f.yaml:1:1: unknown option "agent"`, `f.yaml:2:1: option agents: "x" is not a whole number, at least 1`}},
		{"mapping for a value", "flush-timeout: {a: 1}\n", nil, nil, []string{"f.yaml:1:16", "has a mapping"}},
		{"set twice", "exchange.tls: true\nexchange: {tls: false}\n", nil, nil, []string{"f.yaml:2:12", "is set already at", "f.yaml:1:1"}},
		{"duplicate key", "agents: 1\nagents: 2\n", nil, nil, []string{"f.yaml:2:1"}},
		{"syntax", "agents: [1\n", nil, nil, []string{"f.yaml:1:"}},
		{"list at the top", "- agents\n", nil, nil, []string{"f.yaml:1:1", "mapping of option names"}},
		{"two documents", "agents: 1\n---\nagents: 2\n", nil, nil, []string{"single document"}},
		{"anchor", "agents: &a 1\n", nil, nil, []string{"not supported"}},
		{"unknown variable", "", []string{"HEDDLE_AGENT=2"}, nil, []string{"HEDDLE_AGENT:", "did you mean HEDDLE_AGENTS?"}},
		{"bad variable", "", []string{"HEDDLE_AGENTS=none"}, nil, []string{"environment variable HEDDLE_AGENTS: option agents"}},
		{"unknown flag", "", nil, []Flag{{"agnets", "1", "-D agnets"}}, []string{`-D agnets: unknown option "agnets"; did you mean "agents"?`}},
		{"secret flag", "", nil, []Flag{{"kafka.password", "hunter2", "-D kafka.password"}}, []string{"secret", "HEDDLE_KAFKA_PASSWORD"}},
	}
	for _, tt := range tests {
		file := filepath.Join(t.TempDir(), "f.yaml")
		write(t, file, tt.yaml)
		_, err := Load(testRegistry(t), Sources{File: file, Environ: tt.environ, Flags: tt.flags})
		if err == nil {
			t.Errorf("%s: Load reported no error", tt.name)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: Load reported\n\t%v\nwant %q in it", tt.name, err, want)
			}
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the message shows the secret: %v", tt.name, err)
		}
	}
	if _, err := Load(testRegistry(t), Sources{File: filepath.Join(t.TempDir(), "none")}); err == nil || !strings.Contains(err.Error(), "--config") {
		t.Errorf("Load of a named file that is not there reported %v, want an error that says who named it", err)
	}
}

func TestSecretInAReadableFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.yaml")
	write(t, file, "kafka.password: hunter2\n")
	for mode, want := range map[os.FileMode]int{0o600: 0, 0o640: 0, 0o644: 1} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		c, err := Load(testRegistry(t), Sources{File: file})
		if err != nil || len(c.Warnings()) != want {
			t.Errorf("mode %o: Load = %v with warnings %q, want %d", mode, err, c.Warnings(), want)
		}
	}
}

func TestRestore(t *testing.T) {
	r := testRegistry(t)
	c := New(r)
	for name, text := range map[string]string{"agents": "7", "name": "a \"b\" # c\nd: é", "kafka.brokers": "a,b", "kafka.password": "hunter2"} {
		if err := c.Set(name, text, FromEnvironment, "a\nb"); err != nil {
			t.Fatal(err)
		}
	}
	data := c.AppendYAML(nil)
	if strings.Contains(string(data), "hunter2") {
		t.Errorf("conf.yaml holds a secret:\n%s", data)
	}
	back, err := Restore(r, "conf.yaml", data, c.Secrets())
	if err != nil {
		t.Fatalf("Restore of\n%s: %v", data, err)
	}
	for i, v := range back.Values() {
		if want := c.Values()[i]; v.Text != want.Text {
			t.Errorf("%s restored as %q, want %q", v.Option.Name, v.Text, want.Text)
		} else if want := want.Layer; v.Layer != want && !v.Option.Secret {
			t.Errorf("%s restored as from %s, want %s", v.Option.Name, v.Origin(), want)
		}
	}
}

func TestChildEnviron(t *testing.T) {
	got := ChildEnviron([]string{"PATH=/bin", "HEDDLE_KAFKA_PASSWORD=hunter2", "HEDDLE_ROLE=agent", "TZ=UTC", "OTEL_EXPORTER_OTLP_HEADERS=authorization=hunter2", "=C:"})
	if want := "PATH=/bin TZ=UTC =C:"; strings.Join(got, " ") != want {
		t.Errorf("ChildEnviron = %q, want %q", got, want)
	}
}

func FuzzSetYAML(f *testing.F) {
	for _, s := range []string{"agents: 1", "exchange: {tls: true}", "a: [b, {c: d}]", "? x", "a: &b c\nd: *b", "<<: {a: b}", "---\n---", "a: |\n  b", "\t", "{", "!!x a: b"} {
		f.Add(s)
	}
	r := testRegistry(f)
	f.Fuzz(func(t *testing.T, text string) {
		if err := New(r).SetYAML("f", []byte(text)); err != nil && err.Error() == "" {
			t.Error("an error without a message")
		}
	})
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestFamily: options whose last word is the name of any environment variable.
func TestFamily(t *testing.T) {
	r, err := NewRegistry(Option{Name: "env.NAME", Type: String, Any: true}, Option{Name: "name", Type: String})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "heddle.yaml")
	write(t, file, "env: {TZ: Europe/Paris, b_1: 2}\nenv.A: x\n")
	c, err := Load(r, Sources{File: file, Environ: []string{"HEDDLE_ENV_C=3", "HEDDLE_ENV_A=y"}, Flags: []Flag{{"env.TZ", "UTC", "-D env.TZ"}}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"TZ": "UTC", "b_1": "2", "A": "y", "C": "3"}
	back, err := Restore(r, "conf.yaml", c.AppendYAML(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(c.Variables("env.NAME"), want) || !maps.Equal(back.Variables("env.NAME"), want) {
		t.Errorf("variables %v, read back %v", c.Variables("env.NAME"), back.Variables("env.NAME"))
	}
	if v, ok := c.Value("env.TZ"); !ok || v.Origin() != "flag -D env.TZ" {
		t.Errorf("value %+v", v)
	}
	for _, bad := range []string{"env.", "env.A B", "env.1A", "env.HEDDLE_ROLE", "env.A.B"} {
		if _, err := Load(r, Sources{File: file, Flags: []Flag{{bad, "1", bad}}}); err == nil || !strings.Contains(err.Error(), "environment variable") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
