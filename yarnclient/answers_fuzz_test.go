package yarnclient

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// said answers every request alike.
type said string

func (s said) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(s))), Request: r}, nil
}

// FuzzAnswers: whatever a web service says in its answers' bodies.
func FuzzAnswers(f *testing.F) {
	for i, s := range []string{
		`{"app":{"id":"application_1_0001","state":"RUNNING","amHostHttpAddress":"h:1","startedTime":"9","runningContainers":-1}}`, `{"apps":{"app":[{"id":"application_1_0001"},null]}}`, `{"apps":null}`,
		`{"nodes":{"node":{"id":"n","totalResource":{"resourceInformations":{"resourceInformation":[{"name":"yarn.io/gpu","value":1}]}}}}}`,
		`{"appAttempts":{"appAttempt":{"id":1,"startTime":1e300}}}`, `{"containers":{"container":{"containerId":"x"}}}`, `{"container":[]}`, `{"clusterInfo":{"haState":"ACTIVE"}}`,
		`{"RemoteException":{"exception":"x","message":"y"}}`, `[]`, `{`,
	} {
		f.Add(s, byte(i))
	}
	app := yarnid.Application{}
	f.Fuzz(func(t *testing.T, body string, which byte) {
		c, err := New(Config{Bases: []string{"http://rm:8088"}, Transport: said(body), Attempts: 1, PauseMin: time.Nanosecond, PauseMax: time.Nanosecond})
		if err != nil {
			t.Fatal(err)
		}
		calls := []func(context.Context) error{
			func(ctx context.Context) (err error) { _, err = c.App(ctx, app); return },
			func(ctx context.Context) (err error) { _, err = c.Apps(ctx, Filter{}); return },
			func(ctx context.Context) (err error) { _, err = c.Nodes(ctx); return },
			func(ctx context.Context) (err error) { _, err = c.Labels(ctx); return },
			func(ctx context.Context) (err error) { _, err = c.Attempts(ctx, app); return },
			func(ctx context.Context) (err error) {
				_, err = c.Containers(ctx, yarnid.Attempt{App: app, Number: 1})
				return
			},
			func(ctx context.Context) (err error) { _, err = c.Queues(ctx); return },
		}
		if err := calls[int(which)%len(calls)](context.Background()); err != nil && err.Error() == "" {
			t.Error("an error without a message")
		}
	})
}
