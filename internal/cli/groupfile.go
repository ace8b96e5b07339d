package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"volley/internal/atomicfile"
	"volley/internal/disk"
	"volley/internal/exit"
	"volley/internal/launch"
	"volley/internal/ssh"
)

// groupFlag is the flag that names a group file: what a user would type for a group in every run.
const groupFlag = "group"

// groupKeys are the flags that a group file may have. A verb that has no such flag passes it over.
var groupKeys = []string{"tolerate", "layout", "matrix", "digest", "exclude", "max-deleted", "max-changed", "key", "meta", "group-size", "domain", "root", "retain",
	"ssh", "remote-path", "port", "bind", "memory", "timeout", "network", "limit-rate", readsFlag, "cores", "nice"}

// limitKey is how long a command of a node may take: each verb has its own time for messages.
const limitKey = "command-timeout"

const mostGroupFile = 16 << 20

type groupFile struct {
	flags    map[string][]string
	lines    map[string]int
	dirs     []string
	domains  map[string]string          // by directory; nil: no member has one
	commands map[string]launch.Commands // by directory; those of members that have any
	doc      *yaml.Node
}

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
	g, err := readGroup(o.fileName)
	if err != nil {
		return nil, err
	}
	for _, key := range groupKeys {
		f := cmd.Flags().Lookup(key)
		if key == "root" && f == nil {
			f = cmd.Flags().Lookup("latest")
		}
		if f == nil || f.Changed || key == "root" && cmd.Flags().Changed("step") {
			continue
		}
		for _, value := range g.flags[key] {
			if err := cmd.Flags().Set(f.Name, value); err != nil {
				return nil, exit.Usagef("%s:%d: %w", o.fileName, g.lines[key], flagError(cmd, err))
			}
		}
	}
	o.file, o.sets.domains = *g, g.domains
	return g.dirs, nil
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

// readGroup reads a group file, whose ssh is a program that is run: nobody else may have written it. Directories here
// that are relative lie beside it.
func readGroup(name string) (*groupFile, error) {
	text, err := disk.ReadTrusted(name, mostGroupFile+1)
	if err != nil {
		return nil, exit.Usagef("--%s: %w", groupFlag, err)
	}
	if len(text) > mostGroupFile {
		return nil, exit.Usagef("%s: longer than %d bytes: want a group file, as volley group init writes it", name, mostGroupFile)
	}
	base, err := filepath.Abs(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	g, err := parseGroup(base, text)
	if err != nil {
		return nil, exit.Usagef("%s:%w", name, err)
	}
	return g, nil
}

// parseGroup reads the text of a group file that lies in base. Errors begin with the line.
func parseGroup(base string, text []byte) (*groupFile, error) {
	var doc yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&doc); err != nil && err != io.EOF {
		return nil, fmt.Errorf(" %w", err)
	}
	var more yaml.Node
	if err := d.Decode(&more); err != io.EOF {
		return nil, fmt.Errorf("%d: --- begins another document: write all keys into one", max(1, more.Line))
	}
	g := &groupFile{commands: map[string]launch.Commands{}, flags: map[string][]string{}, lines: map[string]int{}, doc: &doc}
	if doc.Kind == 0 {
		return nil, fmt.Errorf("1: nothing in it: want members")
	}
	limit := 10 * time.Minute // of a command
	err := pairs(doc.Content[0], "the file", func(key string, at, value *yaml.Node) (err error) {
		switch {
		case key == "members":
			return g.addMembers(base, value)
		case key == limitKey:
			if limit, err = time.ParseDuration(textOf(value)); err != nil || limit <= 0 {
				return fmt.Errorf("%d: %s: want a time above 0, such as 10m", value.Line, key)
			}
			return nil
		case !slices.Contains(groupKeys, key):
			return fmt.Errorf("%d: %s: want members, %s, or one of %s", at.Line, key, limitKey, strings.Join(groupKeys, ", "))
		}
		list := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode && key == "exclude" {
			list = value.Content
		}
		g.lines[key] = at.Line
		for _, v := range list {
			text := textOf(v)
			if text == "" {
				return fmt.Errorf("%d: %s: want a value", v.Line, key)
			}
			g.flags[key] = append(g.flags[key], text)
		}
		if (key == "key" && value.Value != "none" || key == "meta") && !filepath.IsAbs(value.Value) {
			return fmt.Errorf("%d: %s: %q: want an absolute path", at.Line, key, value.Value)
		}
		return nil
	})
	for dir, c := range g.commands {
		c.Limit = limit
		g.commands[dir] = c
	}
	if err == nil && len(g.dirs) < 2 {
		err = fmt.Errorf("%d: members: %d: a group has 2 or more", doc.Line, len(g.dirs))
	}
	return g, err
}

// textOf returns a value, or "" where it is none. YAML has what is no UTF-8 in base64.
func textOf(value *yaml.Node) (text string) {
	switch {
	case value.Kind != yaml.ScalarNode:
		return ""
	case value.ShortTag() == "!!binary":
		value.Decode(&text)
		return text
	}
	return value.Value
}

func pairs(of *yaml.Node, what string, f func(key string, at, value *yaml.Node) error) error {
	if of.Kind != yaml.MappingNode {
		return fmt.Errorf("%d: %s: want lines KEY: VALUE", of.Line, what)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(of.Content); i += 2 {
		at := of.Content[i]
		if seen[at.Value] {
			return fmt.Errorf("%d: %s: it is there twice", at.Line, at.Value)
		}
		seen[at.Value] = true
		if err := f(at.Value, at, of.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// addMembers adds the nodes. Either all of them have failure domains, or none has.
func (g *groupFile) addMembers(base string, list *yaml.Node) error {
	if list.Kind != yaml.SequenceNode {
		return fmt.Errorf("%d: members: want a list of - dir: DIR", list.Line)
	}
	lines, domains := map[string]int{}, map[string]string{}
	for i, m := range list.Content {
		wrong := func(line int, format string, args ...any) error {
			return fmt.Errorf("%d: member %d: %s", line, i, fmt.Sprintf(format, args...))
		}
		var dir, domain string
		var c launch.Commands
		err := pairs(m, fmt.Sprint("member ", i), func(key string, at, value *yaml.Node) error {
			to := map[string]*string{"dir": &dir, "domain": &domain, "pre": &c.Pre, "post": &c.Post}[key]
			if to != nil {
				*to = textOf(value)
			}
			if to == nil || *to == "" {
				return wrong(at.Line, "%s: want dir: DIR, domain: what fails together, pre: and post: commands around protect", key)
			}
			return nil
		})
		if err != nil {
			return err
		}
		a, err := ssh.Parse(dir)
		switch {
		case dir == "":
			return wrong(m.Line, "want dir: DIR or HOST:DIR")
		case err != nil:
			return wrong(m.Line, "%v", err)
		case a.Host == "" && !filepath.IsAbs(dir):
			dir = filepath.Join(base, dir)
		}
		if lines[dir] > 0 {
			return wrong(m.Line, "%s is in line %d, too: give every node its own", dir, lines[dir])
		}
		lines[dir] = m.Line
		g.dirs = append(g.dirs, dir)
		if domain != "" {
			domains[dir] = domain
		}
		if c != (launch.Commands{}) {
			g.commands[dir] = c
		}
		if len(domains) > 0 && len(domains) <= i {
			return wrong(m.Line, "some members have a domain, and some have none: give all one")
		}
	}
	if len(domains) > 0 {
		g.domains = domains
	}
	return nil
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
	for _, key := range groupKeys {
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

func scalarNode(value string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: value} }

func memberNode(dir string) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{scalarNode("dir"), scalarNode(dir)}}
}

// absolute returns a directory here by its whole path, as group files have it.
func absolute(dir string) string {
	if a, err := ssh.Parse(dir); err == nil && a.Host == "" {
		if whole, err := filepath.Abs(dir); err == nil {
			return whole
		}
	}
	return dir
}

// groupText returns a group file. Directories here become absolute.
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
	of := &yaml.Node{Kind: yaml.MappingNode}
	for _, key := range groupKeys {
		flag := f.Lookup(key)
		if flag == nil || !flag.Changed {
			continue
		}
		value := scalarNode(flag.Value.String())
		if list, many := flag.Value.(pflag.SliceValue); many {
			value = &yaml.Node{Kind: yaml.SequenceNode}
			for _, x := range list.GetSlice() {
				value.Content = append(value.Content, scalarNode(x))
			}
		}
		of.Content = append(of.Content, scalarNode(key), value)
	}
	members := &yaml.Node{Kind: yaml.SequenceNode}
	for _, dir := range dirs {
		members.Content = append(members.Content, memberNode(absolute(dir)))
	}
	of.Content = append(of.Content, scalarNode("members"), members)
	text, err := yaml.Marshal(of)
	if err == nil {
		_, err = parseGroup("/", text)
	}
	if err != nil {
		return nil, exit.Usagef("not written: line %w", err)
	}
	return append([]byte("# volley protect --group FILE. After a loss put the new directory in the place of the lost one.\n"), text...), nil
}
