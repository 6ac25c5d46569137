package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"

	"github.com/heddle-stream/heddle/appmaster"
)

// announce writes where this attempt's ApplicationMaster is into the application's folder in HDFS, beside what goes on. The returned function
// waits for that. web is the address of its pages.
func (m *yarnMaster) announce(ctx context.Context, web, control string) (wait func()) {
	var wg sync.WaitGroup
	wg.Go(func() {
		data, err := json.Marshal(appmaster.Addr{Web: web, Control: control, PID: os.Getpid(), Attempt: uint32(m.k.id.Attempt.Number - 1)})
		if err == nil {
			err = m.publish(ctx, addrFile, data)
		}
		if err != nil && ctx.Err() == nil {
			m.app.log.Warn("cannot write the ApplicationMaster's address into HDFS", "err", err)
		}
	})
	return wg.Wait
}

// publish writes a small file into the application's folder.
func (m *yarnMaster) publish(ctx context.Context, name string, data []byte) error {
	store, f, err := m.h.openStore()
	if err != nil {
		return err
	}
	return errors.Join(store.Publish(ctx, m.app.dir.id, name, data), f.Close())
}
