package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"volley/group"
	"volley/internal/atomicfile"
	"volley/internal/printable"
)

const resizeVerb = "resize"

func newResize() *cobra.Command {
	o := &groupOptions{}
	x := group.ResizeOptions{}
	o.resizing = &x
	var strict error // of a group that is resized, as the report tells, too
	cmd := &cobra.Command{
		Use:   "resize [--add DIR]... [--remove NODE]... [flags] DIR...",
		Short: "Add nodes to a protected group, or remove some",
		RunE: func(cmd *cobra.Command, args []string) error {
			run := func(g *group.Group, ctx context.Context) (*group.ResizeReport, error) {
				r, err := g.Resize(ctx, x)
				if r == nil {
					return nil, err
				}
				strict, sessionOf(ctx).removed = err, r.Removed
				return r, nil
			}
			return onSets(o, cmd, args, run, func(w io.Writer, r *group.ResizeReport, all bool) error {
				for _, dir := range r.Added {
					printable.Fprintf(w, "added      %s\n", dir)
				}
				for _, dir := range r.Removed {
					what := "whose files stay"
					switch {
					case slices.Contains(r.Lost, dir):
						what = "which is lost"
					case slices.Contains(r.Remains, dir):
						what = "which cannot be read: what it has stays, its .volley too"
					}
					printable.Fprintf(w, "removed    %s, %s\n", dir, what)
				}
				return printProtect(w, r.ProtectReport, x.DryRun, all)
			}, func(*group.ResizeReport) error { return strict })
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&x.Add, "add", nil, "`DIR` of a new node, once for each")
	f.StringArrayVar(&x.Remove, "remove", nil, "`NODE` that leaves, by DIR or number, once for each")
	f.IntVar(&x.Tolerate, "tolerate", 0, "`R`, the nodes that may be lost at a time; 0: as many as before")
	f.StringVar(&x.Layout, "layout", "", "`LAYOUT` full or striped (default: the better one)")
	f.BoolVar(&x.Strict, "strict", false, strictHelp)
	f.BoolVar(&x.DryRun, "dry-run", false, "say what it would take, and write nothing")
	end := flagGroup(cmd, "Override")
	f.BoolVar(&x.Force, "force", false, "go on although nodes are lost or files damaged, which then never come back")
	addAccidents(f, &x.ProtectOptions)
	end()
	o.add(cmd)
	for _, name := range []string{"group-size", "domain"} {
		f.Lookup(name).Hidden = true
	}
	return cmd
}

// resizing has the verb take the directories that it adds as arguments, too, and rewrites a group file once in force.
func resizing(cmd *cobra.Command) {
	plain := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f := cmd.Flags()
		add, _ := f.GetStringArray("add")
		remove, _ := f.GetStringArray("remove")
		dry, _ := f.GetBool("dry-run")
		if size, _ := f.GetInt("group-size"); size != 0 {
			return usagef("--group-size %d: resize is for one group: name the directories of one set", size)
		}
		if sessionOf(cmd.Context()).at != nil { // the launch has done this
			return plain(cmd, args)
		}
		file := ""
		if f.Changed(groupFlag) {
			file, _ = f.GetString(groupFlag)
			for i := range add {
				add[i] = absolute(add[i])
			}
			for i, name := range remove {
				_, err := strconv.Atoi(name)
				switch whole := absolute(name); {
				case slices.Contains(args, name):
				case slices.Contains(args, whole):
					remove[i] = whole
				case err != nil: // it is no number either
					return usagef("--remove %s: want a directory as %s names it, or the number of a node", name, file)
				}
			}
			g := &sessionOf(cmd.Context()).group
			if g.flags["root"] != nil {
				return usagef("--%s %s: it is of roots of snapshots: edit its members, and the next snapshot is protected with these", groupFlag, file)
			}
			if g.domains != nil && add != nil {
				return usagef("--%s %s: its members have domains, which --add cannot give: name the directories, and then add the member to the file", groupFlag, file)
			}
			f.Lookup("add").Value.(pflag.SliceValue).Replace(add)
			f.Lookup("remove").Value.(pflag.SliceValue).Replace(remove)
		}
		for _, dir := range add {
			if !slices.Contains(args, dir) {
				args = append(args, dir)
			} else if file != "" {
				return usagef("--add %s: it is named twice, or %s has it: leave one out", dir, file)
			}
		}
		end := plain(cmd, args)
		if file == "" || dry || end != nil && !sessionOf(cmd.Context()).inForce() {
			return end
		}
		tolerate := ""
		if r := f.Lookup("tolerate"); r.Changed {
			tolerate = r.Value.String()
		}
		if err := rewriteGroup(file, add, sessionOf(cmd.Context()).removed, tolerate); err != nil {
			return fmt.Errorf("the group is resized, and its file is as it was: %w; edit it by hand", err)
		}
		return end
	}
}

// rewriteGroup adds members to a group file, and removes some.
func rewriteGroup(name string, add, remove []string, tolerate string) error {
	g, err := readGroup(name) // as it is by now, and by this name: directories that are relative lie beside it
	if err != nil {
		return err
	}
	if name, err = filepath.EvalSymlinks(name); err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	of := g.doc.Content[0]
	if tolerate != "" && g.flags["tolerate"] == nil {
		of.Content = append([]*yaml.Node{scalarNode("tolerate"), scalarNode(tolerate)}, of.Content...)
	}
	for i := 0; i+1 < len(of.Content); i += 2 {
		switch value := of.Content[i+1]; of.Content[i].Value {
		case "members":
			var list []*yaml.Node
			for n, member := range value.Content {
				if !slices.Contains(remove, g.dirs[n]) {
					list = append(list, member)
				}
			}
			for _, dir := range add {
				if !slices.Contains(g.dirs, dir) { // else another process has added it
					list = append(list, memberNode(dir))
				}
			}
			value.Content = list
		case "tolerate":
			value.Value = tolerate
		}
	}
	text, err := yaml.Marshal(g.doc)
	if err != nil {
		return err
	}
	return atomicfile.WriteMode(name, text, info.Mode())
}
