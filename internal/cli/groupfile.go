package cli

import (
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley/internal/atomicfile"
	"volley/internal/exit"
	"volley/internal/groupfile"
)

// groupFlag is the flag that names a group file: what a user would type for a group in every run.
const groupFlag = "group"

func (o *joining) addFile(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.fileName, groupFlag, "", "`FILE` with the directories of the group and its flags: volley group init writes one")
}

// fromFile returns the directories of the group file, if one is named, or else the arguments. Flags of the file count
// where the command line has none of them.
func (o *joining) fromFile(cmd *cobra.Command, args []string) ([]string, error) {
	if o.session.at != nil { // a launch has done so
		return args, nil
	}
	if err := named(cmd.Flags(), args); err != nil {
		return nil, err
	}
	if !cmd.Flags().Changed(groupFlag) {
		return args, nil
	}
	if len(args) > 0 {
		return nil, exit.Usagef("--%s %s: it has the directories: leave %s out", groupFlag, o.fileName, args[0])
	}
	g, err := groupfile.Read(o.fileName)
	if err != nil {
		return nil, err
	}
	for _, key := range groupfile.Keys {
		f := cmd.Flags().Lookup(key)
		if key == "root" && f == nil {
			f = cmd.Flags().Lookup("latest")
		}
		if f == nil || f.Changed || key == "root" && cmd.Flags().Changed("step") {
			continue
		}
		for _, value := range g.Flags[key] {
			if err := cmd.Flags().Set(f.Name, value); err != nil {
				return nil, exit.Usagef("%s:%d: %w", o.fileName, g.Lines[key], flagError(cmd, err))
			}
		}
	}
	o.file, o.sets.domains = *g, g.Domains
	return g.Dirs, nil
}

// named returns an error where a directory or file has an empty name, as by a variable of a script that is not set.
func named(f *pflag.FlagSet, dirs []string) (err error) {
	if slices.Contains(dirs, "") {
		return exit.Usagef("a directory has an empty name: is a variable not set?")
	}
	f.Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, many := f.Value.(pflag.SliceValue); many {
			values = list.GetSlice()
		}
		if what, _ := pflag.UnquoteUsage(f); slices.Contains(values, "") && slices.Contains([]string{"DIR", "FILE", "NODE"}, what) {
			err = exit.Usagef("--%s: the %s has an empty name: is a variable not set?", f.Name, what)
		}
	})
	return err
}

func newGroup(s *session) *cobra.Command {
	var output string
	init := &cobra.Command{
		Use:   "init [flags] -o FILE DIR...",
		Short: "Write a group file",
		RunE: func(cmd *cobra.Command, args []string) error {
			if output == "" {
				return exit.Usagef("say with -o FILE where the group file comes")
			}
			if _, err := os.Lstat(output); err == nil && output != standard {
				return exit.Usagef("-o %s: it is there: remove it, or choose another name", output)
			}
			text, err := groupText(cmd.Flags(), args)
			if err != nil {
				return err
			}
			if output == standard {
				_, err := cmd.OutOrStdout().Write(text)
				return err
			}
			return placed("-o", atomicfile.WritePerm(output, text, 0o644)) // others may not write it: see readGroup
		},
	}
	verb := newProtect(s)
	for _, key := range groupfile.Keys {
		if f := verb.Flags().Lookup(key); f != nil {
			f.Annotations = nil
			init.Flags().AddFlag(f)
		}
	}
	forOperators(init)
	init.Flags().StringVarP(&output, "output", "o", "", "`FILE` that is written; - is stdout")
	cmd := &cobra.Command{Use: "group", Short: "Write the file that names the nodes of a group, and check hosts", Args: NoArguments, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(init, newGroupCheck(s))
	return cmd
}

// groupText returns a group file with the flags that were given.
func groupText(f *pflag.FlagSet, dirs []string) ([]byte, error) {
	if err := named(f, dirs); err != nil {
		return nil, err
	}
	if len(dirs) < 2 {
		return nil, exit.Usagef("need at least 2 directories, got %d", len(dirs))
	}
	if r, _ := f.GetInt("tolerate"); f.Changed("tolerate") && (r < 1 || r >= len(dirs)) {
		return nil, exit.Usagef("cannot tolerate the loss of %d of %d nodes: want 1 to %d", r, len(dirs), len(dirs)-1)
	}
	var entries []groupfile.Entry
	for _, key := range groupfile.Keys {
		flag := f.Lookup(key)
		if flag == nil || !flag.Changed {
			continue
		}
		e := groupfile.Entry{Key: key, Values: []string{flag.Value.String()}}
		if list, many := flag.Value.(pflag.SliceValue); many {
			e.Values, e.List = list.GetSlice(), true
		}
		entries = append(entries, e)
	}
	return groupfile.Text(entries, dirs)
}
