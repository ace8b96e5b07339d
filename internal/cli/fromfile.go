package cli

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	o.file = *g
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
