package cli

import (
	"context"
	"fmt"
	"path"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-stream/heddle/internal/ship"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// alive are the states of applications that have not ended.
var alive = []string{"NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING"}

func (s *session) gcCommand() *cobra.Command {
	var c ship.Collection
	var foreign bool
	cmd := &cobra.Command{
		Use: "gc", Short: "Remove from HDFS what ended applications left and programs that none uses", Args: exactArgs(0, ""),
		Long: `Remove from the staging folder in HDFS the files of applications that have ended, and programs that no other application names.
Applications remove their files by themselves; what is left is of those that were killed. A program is sent again when it is needed again.

What is younger than --older-than stays, since it may be of an application that is about to be submitted. Files of applications whose ids are not this
cluster's stay too, since several clusters may share the folder, unless --foreign is given: a ResourceManager that was set up anew
gives ids of another kind, and does not remember the old ones.

Reports for heddle history are removed by history.max-age and history.max-count.`,
		Example: "  heddle gc --dry-run\n  heddle gc --older-than 24h",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.askYARN(cmd.Context(), func(ctx context.Context, h *hadoop) error { return s.collect(ctx, h, c, foreign) })
		},
	}
	cmd.Flags().DurationVar(&c.Age, "older-than", time.Hour, "leave what is younger")
	cmd.Flags().BoolVar(&c.DryRun, "dry-run", false, "only say what would be removed")
	cmd.Flags().BoolVar(&foreign, "foreign", false, "remove also files of applications with ids that are not this cluster's")
	return cmd
}

func (s *session) collect(ctx context.Context, h *hadoop, c ship.Collection, foreign bool) error {
	store, f, err := h.openStore()
	if err != nil {
		return err
	}
	defer f.Close()
	known, err := h.knownApps(ctx)
	if err != nil {
		return err
	}
	known.foreign = foreign
	c.Now, c.Ended = time.Now(), known.ended
	out, err := store.GC(ctx, c)
	if err != nil {
		return hdfsError(err)
	}
	removed := "removed"
	if c.DryRun {
		removed = "would remove"
	}
	for _, i := range append(out.Apps, out.Programs...) {
		fmt.Fprintf(s.env.Stdout, "%s %s (%s)\n", removed, i.Path, i.Modified.Local().Format(time.DateTime))
	}
	fmt.Fprintf(s.env.Stdout, "%s the files of %d applications and %d programs (%.1f MB) from %s; %d programs stay\n",
		removed, len(out.Apps), len(out.Programs), float64(out.Bytes)/1e6, path.Clean(store.Root), out.Kept)
	if known.left > 0 {
		fmt.Fprintf(s.env.Stdout, "%d folders left that are not this cluster's; see --foreign\n", known.left)
	}
	config, err := s.load()
	if err != nil {
		return err
	}
	return s.pruneReports(ctx, h.shelf(), config, c.DryRun)
}

// knownApps are the applications that a cluster knows.
type knownApps struct {
	running  map[string]bool // by id
	clusters map[int64]bool  // by the part of ids that says which cluster gave them; one whose ResourceManager was restarted has several
	foreign  bool            // ids of others count too
	left     int             // ids that were asked for and are not this cluster's
}

// knownApps asks the ResourceManager. Which ids are this cluster's is told by one that it gives now, and by those that it remembers from before a restart.
func (h *hadoop) knownApps(ctx context.Context) (*knownApps, error) {
	k := &knownApps{running: map[string]bool{}, clusters: map[int64]bool{}}
	app, err := h.rm.NewApplication(ctx)
	if err != nil {
		return nil, err
	}
	k.clusters[app.ID.Cluster] = true
	apps, err := h.rm.Apps(ctx, yarnclient.Filter{Types: []string{appType}})
	if err != nil {
		return nil, err
	}
	for _, a := range apps {
		if id, err := yarnid.ParseApplication(a.ID); err == nil {
			k.clusters[id.Cluster] = true
		}
	}
	if apps, err = h.rm.Apps(ctx, yarnclient.Filter{States: alive}); err != nil {
		return nil, err
	}
	for _, a := range apps {
		k.running[a.ID] = true
	}
	return k, nil
}

// ended reports whether an application is over for sure.
func (k *knownApps) ended(name string) bool {
	id, err := yarnid.ParseApplication(name)
	if err != nil || k.running[name] {
		return false
	}
	if k.foreign || k.clusters[id.Cluster] {
		return true
	}
	k.left++
	return false
}
