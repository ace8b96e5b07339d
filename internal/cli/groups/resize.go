package groups

import (
	"context"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"volley/group"
	"volley/internal/cli/ranks"
	"volley/internal/cli/session"
	"volley/internal/exit"
	"volley/internal/groupfile"
	"volley/internal/grouptext"
)

func newResize(s *session.Invocation) *cobra.Command {
	o := newOptions(s)
	x := group.ResizeOptions{}
	o.resizing = &x
	cmd := &cobra.Command{
		Use:   "resize [--add DIR]... [--remove NODE]... [flags] DIR...",
		Short: "Add nodes to a protected group, or remove some",
	}
	f := cmd.Flags()
	f.StringArrayVar(&x.Add, "add", nil, "`DIR` of a new node, once for each")
	f.StringArrayVar(&x.Remove, "remove", nil, "`NODE` that leaves, by DIR or number, once for each")
	f.IntVar(&x.Tolerate, "tolerate", 0, "`R`, the nodes that may be lost at a time (default: that of the last run)")
	f.BoolVar(&x.DryRun, "dry-run", false, "say what it would take, and write nothing")
	f.BoolVar(&x.Force, "force", false, "go on although nodes are lost or files damaged, which then never come back")
	addAccept(f, &x.ProtectOptions)
	newVerb(o, cmd, "", func(g part, ctx context.Context) (*group.ResizeReport, error) {
		return g.Resize(ctx, x)
	}, grouptext.Resize, nil)
	f.Lookup("group-size").Hidden = true
	return cmd
}

// resized returns the directories of a group, with those that are added. Where the group has a file, --add and --remove
// name them as the file does.
func (o *groupOptions) resized(dirs []string) ([]string, error) {
	if o.sets.size != 0 {
		return nil, exit.Usagef("--group-size %d: resize is for one group: name the directories of one set", o.sets.size)
	}
	x := o.resizing
	if o.FileName != "" {
		for i := range x.Add {
			x.Add[i] = groupfile.Absolute(x.Add[i])
		}
		for i, name := range x.Remove {
			_, err := strconv.Atoi(name)
			switch absolute := groupfile.Absolute(name); {
			case slices.Contains(dirs, name):
			case slices.Contains(dirs, absolute):
				x.Remove[i] = absolute
			case err != nil: // it is no number either
				return nil, exit.Usagef("--remove %s: want a directory as %s names it, or the number of a node", name, o.FileName)
			}
		}
		if o.File.Flags["step"] != nil {
			return nil, exit.Usagef("--%s %s: it is of roots of snapshots: edit its members, and the next snapshot is protected with these", ranks.GroupFlag, o.FileName)
		}
	}
	for _, dir := range x.Add {
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}
