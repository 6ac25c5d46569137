package cli

import (
	"strings"

	"github.com/heddle-stream/heddle/conf"
	"github.com/spf13/cobra"
)

// completing reports whether the shell asks for what could come next: then every flag is offered, also those that
// are too many for a help text.
func (s *session) completing() bool {
	return len(s.env.Args) > 0 && strings.HasPrefix(s.env.Args[0], cobra.ShellCompRequestCmd)
}

// completeDefinition completes -D: the name of an option, then its value where there are only some.
func completeDefinition(options []conf.Option) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, begun string) (out []string, _ cobra.ShellCompDirective) {
		name, _, named := strings.Cut(begun, "=")
		for _, o := range options {
			switch {
			case !named:
				out = append(out, o.Name+"=\t"+summaryOf(o))
			case o.Name != name:
			case o.Type == conf.Bool:
				out = append(out, name+"=true", name+"=false")
			default:
				for _, v := range o.Values {
					out = append(out, name+"="+v)
				}
			}
		}
		if named {
			return out, cobra.ShellCompDirectiveNoFileComp
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// summaryOf is the first sentence of an option's doc.
func summaryOf(o conf.Option) string {
	first, _, _ := strings.Cut(o.Doc, ". ")
	return strings.TrimSuffix(first, ".")
}

// completeJob completes the argument of verbs that take a job file.
func (s *session) completeJob(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if s.job != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeApp completes the id of an application: with all, also of those that ended.
func (s *session) completeApp(all bool) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
		c, err := s.load()
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		dir, err := s.stateDir(c)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		apps, err := listApps(dir)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, a := range apps {
			if all || a.alive() {
				ids = append(ids, a.id)
			}
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}
