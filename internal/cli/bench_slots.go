package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/bench"
	"github.com/spf13/cobra"
)

func (s *session) benchSlotsCommand() *cobra.Command {
	var asJSON bool
	var strategy string
	o := bench.SlotsOptions{}
	cmd := &cobra.Command{
		Use: "slots", Short: "Give slots of many agents to a job, and judge the cost of each", Args: exactArgs(0, ""),
		Long: `Register agents, give all their slots to a job, lose a tenth of the agents at once, give every slot to where it
was before, and release all, in the very machines of an ApplicationMaster. The exit code is 1 if a bound is broken: at most 2 µs
a slot, at most 4 times the cost at 1,000 slots, 99 of 100 events in less than 1 ms, and with evenly-spread at most one slot
in use more on one agent than on another.`,
		Example: "  heddle bench slots --agents 10000 --slots 10 --strategy evenly-spread --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch strategy {
			case "default", "evenly-spread":
				o.EvenlySpread = strategy == "evenly-spread"
			default:
				return usage(fmt.Errorf("there is no strategy %q", strategy), "there are: default, evenly-spread")
			}
			if err := o.Check(); err != nil {
				return usage(err)
			}
			return s.measured(cmd.Context(), func(ctx context.Context) error {
				r, err := bench.Slots(ctx, o)
				if err != nil {
					return failed(err)
				}
				if err := s.printSlots(r, asJSON); err != nil {
					return err
				}
				if len(r.Broken) > 0 {
					return &exitError{1, fmt.Errorf("bounds are broken: %s", strings.Join(r.Broken, "; ")), nil}
				}
				return nil
			})
		},
	}
	cmd.Flags().IntVar(&o.Agents, "agents", 10_000, "how many agents")
	cmd.Flags().IntVar(&o.Slots, "slots", 10, "slots of each")
	cmd.Flags().StringVar(&strategy, "strategy", "evenly-spread", "`default|evenly-spread`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (s *session) printSlots(r bench.SlotsResult, asJSON bool) error {
	if asJSON {
		return s.out.json(r)
	}
	_, err := fmt.Fprintf(s.env.Stdout, `%d agents of %d slots, %s; ns a slot:
  register %.0f, allocate %.0f, previous allocation %.0f, lose %.0f, release %.0f
  the dearest is %.1f times that at 1,000 slots (%.0f)
%d events: p99 %v, the longest (that hands over all slots of a bulk) %v
%.0f bytes a slot; unevenness %d
`, r.Agents, r.SlotsPerAgent, r.Strategy, r.RegisterNs, r.AllocateNs, r.PreviousNs, r.LoseNs, r.ReleaseNs, r.Ratio, r.SmallNs,
		r.Events, time.Duration(r.EventP99Ns), time.Duration(r.EventMaxNs), r.BytesPerSlot, r.Unevenness)
	return err
}
