package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// What helps those who may not look at an application, or not change it.
const (
	allowView   = "its owner can allow it when he submits it, by yarn.acl-view (users and groups: --yarn.acl-view 'bob,carol operators')"
	allowModify = "its owner can allow it when he submits it, by yarn.acl-modify (users and groups: --yarn.acl-modify 'bob,carol operators')"
)

// app is YARN's report of an application, which it may refuse to show us.
func (h *hadoop) app(ctx context.Context, id yarnid.Application) (yarnclient.App, error) {
	a, err := h.rm.App(ctx, id)
	if err == nil && h.hidden(a) {
		err = h.hiddenError(a)
	}
	return a, err
}

// hidden reports whether YARN told of an application only that it is there, as it does to those who may not look at it: by REST without its times, by RPC without its
// addresses.
func (h *hadoop) hidden(a yarnclient.App) bool {
	return a.User != h.user && a.State == yarnclient.StateRunning && (a.Started.IsZero() || a.TrackingURL == "" && a.AMAddress == "")
}

func (h *hadoop) hiddenError(a yarnclient.App) error {
	return precondition(fmt.Errorf("YARN does not let %s look at %s, which is %s's and %s", h.user, a.ID, a.User, yarnState(a).State), allowView)
}

// mayNot gives an error of an action its exit code, and says what helps those who may look at an application but not change it.
func (h *hadoop) mayNot(a yarnclient.App, err error) error {
	answer, ok := errors.AsType[*answerError](err)
	if a.User == h.user || !yarnclient.IsDenied(err) && (!ok || answer.code != http.StatusForbidden) {
		return yarnError(err)
	}
	return precondition(fmt.Errorf("%s may not change %s, which is %s's: %w", h.user, a.ID, a.User, err), allowModify)
}

// refused is refusal of a question about an application to its ApplicationMaster.
func (h *hadoop) refused(a yarnclient.App, err error) error {
	if answer, ok := errors.AsType[*answerError](err); ok && answer.code == http.StatusForbidden && a.User != h.user {
		return h.mayNot(a, err)
	}
	return refusal(err)
}

// denied reports whether an ApplicationMaster does not let us look.
func denied(err error) bool {
	a, ok := errors.AsType[*answerError](err)
	return ok && (a.code == http.StatusUnauthorized || a.code == http.StatusForbidden)
}
