package cli

import (
	"context"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/history"
	"github.com/heddle-stream/heddle/internal/ship"
)

// keeper writes the reports of an application.
func (a *application) keeper(shelf history.Shelf) *history.Keeper {
	c := a.conf
	k := &history.Keeper{Every: c.Duration("history.interval"), Shelf: shelf, Limit: historyLimits(c), Log: a.log,
		Base: history.Report{Target: c.Text("target"), Version: version()}}
	for _, o := range a.options() {
		k.Base.Options = append(k.Base.Options, history.Option{Name: o.Name, Value: o.Value, Origin: o.Origin})
	}
	return k
}

// historyLimits say which reports are kept.
func historyLimits(c *conf.Config) history.Limits {
	return history.Limits{Age: c.Duration("history.max-age"), Count: c.Int("history.max-count")}
}

// shelf is where the reports of a user's applications on a cluster are.
func (h *hadoop) shelf() history.HDFS { return h.shelfOf("") }

// shelfOf is where the reports of a user's applications are, or of ours.
func (h *hadoop) shelfOf(user string) history.HDFS {
	return history.HDFS{Open: func() (*ship.Store, interface{ Close() error }, error) { return h.openStoreOf(user) }}
}

// runKept runs an ApplicationMaster, of which reports are written meanwhile and at its end.
func runKept(ctx context.Context, k *history.Keeper, cfg appmaster.Config, front *figureFront) (appmaster.Result, error) {
	if k.Limit.Count == 0 {
		return appmaster.Run(ctx, cfg)
	}
	keeping, stop := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { k.Run(keeping, front.snapshot) })
	result, err := appmaster.Run(ctx, cfg)
	stop(context.Canceled)
	wg.Wait()
	k.End(ctx, front.snapshot(), time.Now())
	return result, err
}
