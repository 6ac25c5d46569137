package cli

import (
	"fmt"
	"strings"
	"sync"

	"github.com/heddle-stream/heddle/conf"
	"github.com/spf13/cobra"
)

// registry is all options: Heddle's own and those that the linked connectors declare.
var registry = sync.OnceValues(conf.Builtin)

func (s *session) configCommand() *cobra.Command {
	var asJSON, changed, defaults bool
	cmd := &cobra.Command{
		Use: "config [name…]", Short: "Show every option, its value and where it came from",
		Long: `Show every option, its value and where that came from: default, file, environment or flag.
Secrets are masked. With names, only those options and the ones below them are shown.`,
		Example: `  heddle config
  heddle config exchange kafka.brokers
  heddle config --changed --agents 3
  heddle config --defaults > heddle.yaml`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return optionNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if defaults {
				return s.printDefaults()
			}
			c, err := s.load()
			if err != nil {
				return err
			}
			values, err := selectValues(c, args, changed)
			if err != nil {
				return err
			}
			return s.printValues(values, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&changed, "changed", false, "only what is not at its default")
	cmd.Flags().BoolVar(&defaults, "defaults", false, "print a commented configuration file with all defaults")
	return cmd
}

func optionNames() []string {
	r, err := registry()
	if err != nil {
		return nil
	}
	var names []string
	for _, o := range r.Options() {
		names = append(names, o.Name)
	}
	return names
}

func (s *session) printDefaults() error {
	r, err := registry()
	if err != nil {
		return err
	}
	_, err = s.env.Stdout.Write(r.AppendDefaultFile(nil))
	return err
}

// selectValues returns the values that names ask for; all for none.
func selectValues(c *conf.Config, names []string, changed bool) ([]conf.Value, error) {
	used := make([]bool, len(names))
	var selected []conf.Value
	for _, v := range c.Values() {
		wanted := len(names) == 0
		for i, name := range names {
			if v.Option.Name == name || strings.HasPrefix(v.Option.Name, name+".") {
				wanted, used[i] = true, true
			}
		}
		if wanted && !(changed && v.Layer == conf.FromDefault) {
			selected = append(selected, v)
		}
	}
	for i, name := range names {
		if !used[i] {
			hint := "`heddle config` lists all"
			if n := conf.Nearest(name, optionNames()); n != "" {
				hint = "did you mean " + n + "?"
			}
			return nil, usage(fmt.Errorf("there is no option %q", name), hint)
		}
	}
	return selected, nil
}

func (s *session) printValues(values []conf.Value, asJSON bool) error {
	if asJSON {
		type value struct {
			Name    string `json:"name"`
			Value   string `json:"value"`
			Origin  string `json:"origin"` // default, file, environment, flag
			Where   string `json:"where,omitempty"`
			Default string `json:"default"`
			Type    string `json:"type"`
			Secret  bool   `json:"secret,omitempty"`
			Doc     string `json:"doc"`
		}
		list := make([]value, 0, len(values))
		for _, v := range values {
			list = append(list, value{v.Option.Name, v.Shown(), v.Layer.String(), v.Where, v.Option.Default, v.Option.Type.String(), v.Option.Secret, v.Option.Doc})
		}
		return s.out.json(list)
	}
	rows := make([][]string, 0, len(values))
	for _, v := range values {
		shown := v.Shown()
		if shown == "" {
			shown = "-"
		}
		rows = append(rows, []string{v.Option.Name, shown, v.Origin()})
	}
	return s.out.table([]string{"OPTION", "VALUE", "FROM"}, rows)
}
