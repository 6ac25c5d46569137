package yarntest_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/nm"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
	"github.com/heddle-stream/heddle/yarnclient/yarntest"
)

// TestManyNodes meets more nodes than an old client had room for tokens (gohadoop).
func TestManyNodes(t *testing.T) {
	with(t, yarntest.Options{Nodes: 40, QOP: []string{"auth-conf"}}, true, func(t *testing.T, c *yarntest.Cluster, m *master) {
		m.want(80)
		time.Sleep(10 * time.Second)
		nodes := map[string]bool{}
		for _, k := range c.Running() {
			nodes[k.Node] = true
		}
		if len(nodes) != 40 || len(c.Running()) != 80 || len(m.failures) != 0 {
			t.Errorf("%d containers run on %d nodes; failures %v", len(c.Running()), len(nodes), m.failures)
		}
	})
}

// TestStartAnswerLost: the second try finds the container started.
func TestStartAnswerLost(t *testing.T) {
	with(t, yarntest.Options{}, true, func(t *testing.T, c *yarntest.Cluster, m *master) {
		c.Script("startContainers", yarntest.LoseAnswer, yarntest.Fail(hrpc.ClassNMNotReady, "not yet"), yarntest.LoseAnswer)
		m.want(2)
		time.Sleep(30 * time.Second)
		if len(m.failures) != 0 || len(c.Running()) != 2 {
			t.Errorf("%d run; failures %v", len(c.Running()), m.failures)
		}
	})
}

// TestLateStart comes after the container's token has expired (YARN-11251): it fails once, and is not tried for ever.
func TestLateStart(t *testing.T) {
	with(t, yarntest.Options{}, false, func(t *testing.T, c *yarntest.Cluster, m *master) {
		m.want(1)
		time.Sleep(time.Second)
		m.mu.Lock()
		g := m.granted[0]
		m.mu.Unlock()
		c.End(g.Container, -100, "Container expired since it was unused")
		start := time.Now()
		err := m.nm.Start(t.Context(), nm.Launch{Container: g.Container, Node: g.Node, Token: g.Token, Command: "x"})
		if err == nil || !strings.Contains(err.Error(), "expired") || time.Since(start) > time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		g.Token.Password = []byte("forged")
		if err := m.nm.Start(t.Context(), nm.Launch{Container: g.Container, Node: g.Node, Token: g.Token, Command: "x"}); hrpc.ClassOf(err) != hrpc.ClassInvalidToken {
			t.Errorf("forged: %v", err)
		}
	})
}

// TestEndBeforeStartReturns: the container's end is told before the call that started it returns (SPARK-43510), and stopping twice is harmless (SPARK-23637).
func TestEndBeforeStartReturns(t *testing.T) {
	with(t, yarntest.Options{}, false, func(t *testing.T, c *yarntest.Cluster, m *master) {
		c.OnStart(func(k *yarntest.Container) {
			c.End(k.ID, 1, "died at once")
			time.Sleep(5 * time.Second)
		})
		m.want(1)
		time.Sleep(time.Second)
		m.mu.Lock()
		g := m.granted[0]
		m.mu.Unlock()
		if err := m.nm.Start(t.Context(), nm.Launch{Container: g.Container, Node: g.Node, Token: g.Token, Command: "x"}); err != nil {
			t.Error(err)
		}
		if _, done, _ := m.counts(); done != 1 {
			t.Errorf("%d ends told before the call returned", done)
		}
		for range 2 {
			if err := m.nm.Stop(t.Context(), g.Node, g.Container); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(5 * time.Second)
		if _, done, _ := m.counts(); done != 1 {
			t.Errorf("%d ends in all", done)
		}
		if err := m.nm.Stop(t.Context(), g.Node, yarnid.Container{Attempt: c.Attempt, Number: 999}); err != nil {
			t.Errorf("stopping one that is not there: %v", err)
		}
	})
}

// TestLaunchContext is what the container gets: its command, environment, files, and credentials without the master's own token (FLINK-11126).
func TestLaunchContext(t *testing.T) {
	with(t, yarntest.Options{}, false, func(t *testing.T, c *yarntest.Cluster, m *master) {
		m.want(1)
		time.Sleep(time.Second)
		m.mu.Lock()
		g := m.granted[0]
		m.mu.Unlock()
		creds := token.Credentials{Tokens: []token.Named{{Alias: "", Token: c.Token()}, {Alias: "nn", Token: token.Token{Kind: token.KindHDFS}}}, Secrets: []token.Secret{{Name: "leaf", Value: []byte("key")}}}
		l := nm.Launch{Container: g.Container, Node: g.Node, Token: g.Token, Command: "./x", Env: map[string]string{"A": "1"}, Credentials: creds, ViewACL: "bob",
			Resources: []yarnclient.LocalResource{{Name: "x", URI: "hdfs://ns/path/x", Visibility: yarnclient.Private, Size: 3, Modified: time.UnixMilli(77)},
				{Name: "y", URI: "hdfs://h:8020/y", Archive: true, Visibility: yarnclient.Public}}}
		if err := m.nm.Start(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		st, err := m.nm.Status(t.Context(), g.Node, g.Container)
		if err != nil || st.Complete {
			t.Errorf("status %+v, %v", st, err)
		}
		ctx := c.Running()[0].Context
		got, err := token.Parse(ctx.GetTokens())
		if err != nil || len(got.Of(token.KindAMRM)) != 0 || len(got.Of(token.KindHDFS)) != 1 || !bytes.Equal(got.Secret("leaf"), []byte("key")) {
			t.Errorf("credentials %+v, %v", got, err)
		}
		r := ctx.LocalResources
		if len(r) != 2 || r[0].Value.GetResource().GetPort() != -1 || r[0].Value.GetResource().GetHost() != "ns" || r[0].Value.GetResource().GetFile() != "/path/x" ||
			r[0].Value.GetTimestamp() != 77 || r[1].Value.GetResource().GetPort() != 8020 {
			t.Errorf("resources %v", r)
		}
		l.Resources = []yarnclient.LocalResource{{Name: "z", URI: "no scheme"}}
		if err := m.nm.Start(t.Context(), l); err == nil || !strings.Contains(err.Error(), "file z") {
			t.Errorf("a file without URI: %v", err)
		}
	})
}

// TestNodeAway: calls to a node that does not answer end in bounded time, and those to others don't wait for them.
func TestNodeAway(t *testing.T) {
	with(t, yarntest.Options{}, false, func(t *testing.T, c *yarntest.Cluster, m *master) {
		n := nm.New(nm.Config{Dial: c.Dial, Concurrency: 1, Attempts: 3, Token: func(string) (token.Token, bool) { return token.Token{}, true }})
		start := time.Now()
		if err := n.Stop(t.Context(), "nowhere:1", yarnid.Container{}); err == nil || time.Since(start) > 5*time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := n.Stop(ctx, "nowhere:1", yarnid.Container{}); err == nil || time.Since(start) > 6*time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		none := nm.New(nm.Config{Dial: c.Dial, Token: func(string) (token.Token, bool) { return token.Token{}, false }})
		if err := none.Stop(t.Context(), c.Node(0).ID, yarnid.Container{}); err == nil || !strings.Contains(err.Error(), "no NMToken") {
			t.Errorf("without token: %v", err)
		}
		n.Close()
		none.Close()
		if err := n.Stop(t.Context(), c.Node(0).ID, yarnid.Container{}); err == nil {
			t.Error("a closed client calls")
		}
	})
}
