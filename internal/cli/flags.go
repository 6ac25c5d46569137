package cli

import (
	"fmt"
	"strings"

	"github.com/heddle-stream/heddle/conf"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// addOptionFlags gives root a flag for every option, and -D and --config.
// Only the common options are listed in the help.
func (s *session) addOptionFlags(root *cobra.Command) {
	fs := root.PersistentFlags()
	fs.StringVar(&s.config, "config", "", "configuration `file`")
	fs.VarP(&definition{s}, "define", "D", "set any option, as `name=value`; repeatable")
	r, err := registry()
	if err != nil { // reported by every verb that loads a configuration
		return
	}
	// The error would be that the flag is not there.
	_ = root.RegisterFlagCompletionFunc("define", completeDefinition(r.Options()))
	for _, o := range r.Options() {
		if o.Any { // see variableFlags
			continue
		}
		flag := fs.VarPF(&optionFlag{s, o}, o.Name, "", summary(o))
		if o.Type == conf.Bool {
			flag.NoOptDefVal = "true"
		}
		flag.DefValue = o.Default
		flag.Hidden = !o.Common && !s.completing()
		if o.Type == conf.Enum {
			values := o.Values
			// The error would be that the flag is not there.
			_ = root.RegisterFlagCompletionFunc(o.Name, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				return values, cobra.ShellCompDirectiveNoFileComp
			})
		}
	}
}

// summary is the first sentence of an option's doc, as help of its flag.
func summary(o conf.Option) string {
	first := summaryOf(o)
	if o.Type == conf.Enum {
		first, _, _ = strings.Cut(first, ". ")
		return first + ": `" + strings.Join(o.Values, "|") + "`"
	}
	return first
}

// optionFlag is the flag --name of one option. What it is set to is judged when the configuration is loaded,
// together with everything else that may be wrong.
type optionFlag struct {
	s *session
	o conf.Option
}

func (f *optionFlag) String() string { return "" }
func (f *optionFlag) Type() string   { return f.o.Type.String() }

func (f *optionFlag) Set(text string) error {
	f.s.flags = append(f.s.flags, conf.Flag{Name: f.o.Name, Text: text, Where: "--" + f.o.Name})
	return nil
}

// definition is -D name=value.
type definition struct{ s *session }

func (d *definition) String() string { return "" }
func (d *definition) Type() string   { return "name=value" }

func (d *definition) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("want name=value")
	}
	d.s.flags = append(d.s.flags, conf.Flag{Name: name, Text: value, Where: "-D " + name})
	return nil
}

// flagError words what pflag reports, and names the nearest flag.
func (s *session) flagError(cmd *cobra.Command, err error) error {
	hints := []string{fmt.Sprintf("`%s --help` shows the flags", cmd.CommandPath())}
	if name, ok := strings.CutPrefix(err.Error(), "unknown flag: --"); ok {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if n := conf.Nearest(name, names); n != "" {
			hints = []string{"did you mean --" + n + "?"}
		}
	}
	return usage(err, hints...)
}

// exactArgs is cobra.ExactArgs with our words.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		err := fmt.Errorf("%s takes no arguments, got %q", cmd.CommandPath(), args)
		if n > 0 {
			err = fmt.Errorf("%s takes %s, got %d arguments", cmd.CommandPath(), what, len(args))
		}
		return usage(err, "usage: "+cmd.UseLine())
	}
}

// usageTemplate is cobra's with the options of the configuration under a heading of their own.
const usageTemplate = `Usage:{{if and .Runnable .HasParent}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} <verb> [flags] [arguments]{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Verbs:{{range .Commands}}{{if (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}{{if and .HasParent .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasHelpSubCommands}}

More help:{{range .Commands}}{{if .IsAdditionalHelpTopicCommand}}
  {{rpad .CommandPath .CommandPathPadding}} {{.Short}}{{end}}{{end}}{{end}}

Common options ("{{.Root.Name}} config" shows all; each can be set as --name, in the environment or in a file):
{{if .HasParent}}{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}{{else}}{{.PersistentFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}
`
