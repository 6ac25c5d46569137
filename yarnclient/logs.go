package yarnclient

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// maxLog bounds what is read of a log.
const maxLog = 16 << 20

// ContainerLog returns the last bytes of a container's log file, such as stdout, from the NodeManager that it runs or ran on. node is host:port of its web
// service. A NodeManager knows a container's logs until they are aggregated or deleted, soon after the application's end.
func (c *Client) ContainerLog(ctx context.Context, node string, id yarnid.Container, file string, last int) (string, error) {
	what := fmt.Sprintf("read %s of %s", file, id)
	u := url.URL{Scheme: c.bases[0].Scheme, Host: node, Path: "/ws/v1/node/containers/" + id.String() + "/logs/" + file,
		RawQuery: url.Values{"size": {fmt.Sprint(-last)}, "format": {"text"}}.Encode()}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", fmt.Errorf("cannot %s: %w", what, err)
	}
	req.Header.Set("User-Agent", "heddle")
	if err := c.cfg.Auth.Authorize(req); err != nil {
		return "", fmt.Errorf("cannot %s: %w", what, err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return "", fmt.Errorf("cannot %s: %w", what, withoutURL(err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxLog))
	if err != nil {
		return "", fmt.Errorf("cannot %s: the answer breaks off: %w", what, err)
	}
	if resp.StatusCode != http.StatusOK {
		return "", apiError(what, u.Scheme+"://"+node, resp.StatusCode, body)
	}
	return logContents(string(body)), nil
}

// logContents takes a log out of the frame that NodeManagers put around it.
func logContents(s string) string {
	const begin, end = "LogContents:\n", "\nEnd of LogType:"
	if _, after, ok := strings.Cut(s, begin); ok {
		s = "\n" + after // which an empty log does not end with
		// The log may hold the same words; the frame's are the last.
		if i := strings.LastIndex(s, end); i >= 0 {
			s = s[:i+1]
		}
		s = s[1:]
	}
	return s
}
