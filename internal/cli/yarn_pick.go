package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// errSeveral says that a verb would have to guess which of several applications is meant.
var errSeveral = errors.New("say which")

// yarnArg is the application on YARN that a verb is for: the one that its argument names or, with the target yarn and without an argument, the only
// one of the user's that waits or runs. ok is false if the verb is for an application of this host.
func (s *session) yarnArg(ctx context.Context, args []string) (id yarnid.Application, ok bool, err error) {
	if len(args) > 0 {
		if !strings.HasPrefix(args[0], "application_") {
			return id, false, nil
		}
		if id, err = yarnid.ParseApplication(args[0]); err != nil {
			return id, true, usage(err, "`"+s.env.Program+" list --target yarn` shows those of the cluster")
		}
		return id, true, nil
	}
	c, err := s.load()
	if err != nil {
		return id, false, err
	}
	if c.Text("target") != "yarn" {
		return id, false, nil
	}
	err = s.withYARN(func(_ *conf.Config, h *hadoop) (err error) {
		id, err = s.onlyOnYARN(ctx, h)
		return err
	})
	return id, true, err
}

// onlyOnYARN is the user's only application that waits or runs.
func (s *session) onlyOnYARN(ctx context.Context, h *hadoop) (id yarnid.Application, err error) {
	apps, err := h.rm.Apps(ctx, yarnclient.Filter{Types: []string{appType}, User: h.user, States: alive})
	if err != nil {
		return id, yarnError(err)
	}
	switch len(apps) {
	case 0:
		return id, precondition(fmt.Errorf("user %s has no application of Heddle on this cluster that waits or runs", h.user), "those of others, and those that ended: "+s.env.Program+" list --target yarn --all")
	case 1:
		return yarnid.ParseApplication(apps[0].ID)
	}
	var hints []string
	for _, a := range apps {
		hints = append(hints, fmt.Sprintf("%s  %s  %s", a.ID, dash(printable(a.Name)), strings.ToLower(a.State)))
	}
	return id, usage(fmt.Errorf("user %s has %d applications of Heddle on this cluster: %w", h.user, len(apps), errSeveral), hints...)
}
