package kafka

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/itest/testbed"
)

// uniq counts words as sort | uniq -c does, by those very programs, and returns sorted lines "count word".
func uniq(t *testing.T, text string) []string {
	t.Helper()
	cmd := exec.Command("sh", "-c", `tr -s '[:space:]' '\n' | grep -v '^$' | LC_ALL=C sort | LC_ALL=C uniq -c`)
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for l := range strings.Lines(string(out)) {
		f := strings.Fields(l)
		lines = append(lines, f[0]+" "+f[1])
	}
	slices.Sort(lines)
	return lines
}

// diff fails the test where two sorted lists differ, and shows a few of the differences.
func diff(t *testing.T, what string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	in := func(list []string) map[string]int {
		m := map[string]int{}
		for _, l := range list {
			m[l]++
		}
		return m
	}
	g, w := in(got), in(want)
	shown := 0
	for _, l := range slices.Concat(want, got) {
		if g[l] != w[l] && shown < 10 {
			t.Logf("%s: %q: got %d times, want %d", what, l, g[l], w[l])
			shown++
		}
	}
	t.Fatalf("%s: got %d lines, want %d", what, len(got), len(want))
}

// heddleArgs are the options of every run: two agents of two slots, parallelism 4, state in the test's folder.
func heddleArgs(b *testbed.Bed, k *testbed.Kafka) []string {
	return []string{"-D", "state-dir=" + b.Dir("state"), "-D", "kafka.brokers=" + k.Bootstrap,
		"-D", "agents=2", "-D", "agent.slots=2", "-D", "parallelism=4"}
}

func TestWordCount(t *testing.T) {
	testbed.Group(t, "kafka")
	b := testbed.New(t)
	heddle := testbed.BuildHeddle(t, b)
	program := testbed.BuildProgram(t, b, "./itest/kafka/wordcount", "wordcount")
	k := testbed.StartKafka(t, b)
	k.CreateTopic("lines", 8)
	book := text(t)
	k.Produce("lines", book)
	want := uniq(t, book)
	args := heddleArgs(b, k)

	t.Run("yaml", func(t *testing.T) {
		k.CreateTopic("counts-yaml", 4)
		job := b.File("wordcount.yaml", `name: word-count
source: { kafka: { topics: [lines], format: text, stop: latest } }
steps:
  - flat_map: { word: words(line) }
  - key_by: word
  - window: { global: true, aggregate: { count: count() } }
sink: { kafka: { topic: counts-yaml, format: { text: "{count} {word}" } } }
`)
		p := b.Start(testbed.Spec{Name: "run-yaml", Path: heddle, Args: append([]string{"run", job}, args...)})
		if code := p.Wait(2 * time.Minute); code != 0 {
			t.Fatalf("heddle run: exit code %d\n%s", code, p.Tail(30))
		}
		check(t, k, "counts-yaml", want)
	})
	t.Run("go", func(t *testing.T) {
		k.CreateTopic("counts-go", 4)
		p := b.Start(testbed.Spec{Name: "run-go", Path: program, Args: append([]string{"-in", "lines", "-out", "counts-go", "run"}, args...)})
		if code := p.Wait(2 * time.Minute); code != 0 {
			t.Fatalf("wordcount run: exit code %d\n%s", code, p.Tail(30))
		}
		check(t, k, "counts-go", want)
	})
}

// check compares what Kafka's own console consumer reads with what sort | uniq -c says.
func check(t *testing.T, k *testbed.Kafka, topic string, want []string) {
	t.Helper()
	if n := k.Count(topic); n != len(want) {
		t.Errorf("%s holds %d records, want %d", topic, n, len(want))
	}
	got := k.Consume(topic, len(want))
	slices.Sort(got)
	diff(t, topic, got, want)
}

// TestMissingTopic: a listed topic that is not there is a clear error, before anything runs.
func TestMissingTopic(t *testing.T) {
	testbed.Group(t, "kafka")
	b := testbed.New(t)
	program := testbed.BuildProgram(t, b, "./itest/kafka/wordcount", "wordcount")
	k := testbed.StartKafka(t, b)
	k.CreateTopic("counts", 1) // or else the sink, whose topic is missing too, may say so first
	p := b.Start(testbed.Spec{Name: "run", Path: program, Args: append([]string{"-in", "nowhere", "run"}, heddleArgs(b, k)...)})
	if code := p.Wait(time.Minute); code == 0 {
		t.Error("exit code 0 for a topic that does not exist")
	}
	if out := p.Output(); !strings.Contains(out, "nowhere") {
		t.Errorf("the error does not name the topic:\n%s", out)
	}
	if k.Topics()["nowhere"] {
		t.Error("looking for a topic created it")
	}
}

// faultJob starts an unbounded job that copies lines to a topic as they come.
func faultJob(t *testing.T, b *testbed.Bed, k *testbed.Kafka, extra ...string) *testbed.Process {
	t.Helper()
	heddle := testbed.BuildHeddle(t, b)
	k.CreateTopic("lines", 4)
	k.CreateTopic("copy", 4)
	job := b.File("copy.yaml", `name: copy
source: { kafka: { topics: [lines], format: text } }
steps:
  - dedupe: { by: [line], within: 1h }
sink: { kafka: { topic: copy, format: { text: "{line}" } } }
`)
	p := b.Start(testbed.Spec{Name: "run", Path: heddle, Args: append(append([]string{"run", job}, heddleArgs(b, k)...), extra...)})
	k.Produce("lines", numbered(0, 100))
	b.Eventually("the first hundred lines are copied", time.Minute, func() error {
		if !p.Running() {
			t.Fatalf("the job ended:\n%s", p.Tail(30))
		}
		if n := k.Count("copy"); n != 100 {
			return fmt.Errorf("%d of 100 lines are there", n)
		}
		return nil
	})
	return p
}

func numbered(from, to int) string {
	var s strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&s, "line-%d\n", i)
	}
	return s.String()
}

// children are the processes of the test's job with a role, by their environment.
func children(t *testing.T, b *testbed.Bed, role string) []int {
	t.Helper()
	pids := testbed.WithEnv("HEDDLE_ROLE=" + role)
	mine := testbed.WithArg(b.Dir("state"))
	return slices.DeleteFunc(pids, func(pid int) bool { return !slices.Contains(mine, pid) })
}

// gone waits until no process of the job is left.
func gone(t *testing.T, b *testbed.Bed) {
	t.Helper()
	b.Eventually("every process of the job is gone", 15*time.Second, func() error {
		if left := testbed.WithArg(b.Dir("state")); len(left) > 0 {
			return fmt.Errorf("processes %v are left", left)
		}
		return nil
	})
}

// TestKill: kill -9 of an agent or the master ends the run within 15 s, with a clear error, and leaves nothing.
func TestKill(t *testing.T) {
	testbed.Group(t, "kafka")
	for _, c := range []struct{ role, says string }{{"agent", "agent"}, {"appmaster", "ApplicationMaster"}} {
		t.Run(c.role, func(t *testing.T) {
			b := testbed.New(t)
			k := testbed.StartKafka(t, b)
			p := faultJob(t, b, k)
			pids := children(t, b, c.role)
			if len(pids) == 0 {
				t.Fatalf("no process has the role %s:\n%s", c.role, p.Tail(20))
			}
			testbed.Kill9(t, pids[0])
			if code := p.Wait(15 * time.Second); code != 5 {
				t.Errorf("exit code: got %d, want 5\n%s", code, p.Tail(30))
			}
			if !strings.Contains(p.Output(), c.says) {
				t.Errorf("the error does not name %s:\n%s", c.says, p.Tail(30))
			}
			gone(t, b)
		})
	}
}

// TestInterrupt: Ctrl-C of an attached run cancels it.
func TestInterrupt(t *testing.T) {
	testbed.Group(t, "kafka")
	b := testbed.New(t)
	k := testbed.StartKafka(t, b)
	p := faultJob(t, b, k)
	p.Interrupt()
	if code := p.Wait(15 * time.Second); code != 6 {
		t.Errorf("exit code: got %d, want 6\n%s", code, p.Tail(30))
	}
	gone(t, b)
}

// TestBrokerAway: the reason shows within 15 s of the broker's death; reading goes on when it returns.
func TestBrokerAway(t *testing.T) {
	testbed.Group(t, "kafka")
	b := testbed.New(t)
	k := testbed.StartKafka(t, b)
	p := faultJob(t, b, k)
	k.Kill()
	b.Eventually("the output tells that the broker is away", 15*time.Second, func() error {
		if !strings.Contains(p.Output(), "held up by") || !strings.Contains(p.Output(), k.Bootstrap) {
			return fmt.Errorf("not yet:\n%s", p.Tail(20))
		}
		return nil
	})
	k.Start()
	k.Produce("lines", numbered(100, 200))
	b.Eventually("the next hundred lines are copied", time.Minute, func() error {
		if !p.Running() {
			t.Fatalf("the job ended:\n%s", p.Tail(30))
		}
		if n := k.Count("copy"); n != 200 {
			return fmt.Errorf("%d of 200 lines are there", n)
		}
		return nil
	})
	p.Interrupt()
	p.Wait(15 * time.Second)
	got := k.Consume("copy", 200)
	slices.Sort(got)
	want := strings.Fields(numbered(0, 200))
	slices.Sort(want)
	diff(t, "copy", got, want)
}

// TestBrokerGone: a broker away for longer than kafka.unavailable-timeout fails the job.
func TestBrokerGone(t *testing.T) {
	testbed.Group(t, "kafka")
	b := testbed.New(t)
	k := testbed.StartKafka(t, b)
	p := faultJob(t, b, k, "-D", "kafka.unavailable-timeout=5s")
	k.Kill()
	if code := p.Wait(40 * time.Second); code != 5 {
		t.Errorf("exit code: got %d, want 5\n%s", code, p.Tail(30))
	}
	for _, w := range []string{k.Bootstrap, "kafka.unavailable-timeout"} {
		if !strings.Contains(p.Output(), w) {
			t.Errorf("the error does not name %s:\n%s", w, p.Tail(30))
		}
	}
	gone(t, b)
}
