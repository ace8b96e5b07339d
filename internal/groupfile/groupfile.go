// Package groupfile reads and writes the file that names the nodes of a group and the flags for it.
package groupfile

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"volley/internal/disk"
	"volley/internal/exit"
	"volley/internal/ssh"
)

// Keys are the flags that a group file may have. A verb that has no such flag passes it over.
var Keys = []string{"tolerate", "digest", "exclude", "key", "meta", "group-size", "step", "retain",
	"ssh", "remote-path", "port", "bind", "memory", "timeout", "limit-rate", "limit-read"}

// listKey is the one that may have several values.
const listKey = "exclude"

// MostBytes is how long a group file may be.
const MostBytes = 16 << 20

// A Document is what a group file says.
type Document struct {
	Flags   map[string][]string
	Lines   map[string]int
	Dirs    []string
	Domains map[string]string // by directory; nil: no member has one
	doc     *yaml.Node
}

// Read reads a group file, whose ssh is a program that is run: nobody else may have written it. Directories here
// that are relative lie beside it.
func Read(name string) (*Document, error) {
	text, err := disk.ReadTrusted(name, MostBytes+1)
	if err != nil {
		return nil, exit.Usagef("--group: %w", err)
	}
	if len(text) > MostBytes {
		return nil, exit.Usagef("%s: longer than %d bytes: want a group file: volley help groups", name, MostBytes)
	}
	base, err := filepath.Abs(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	g, err := parse(base, text)
	if err != nil {
		return nil, exit.Usagef("%s:%w", name, err)
	}
	return g, nil
}

// parse reads the text of a group file that lies in base. Errors begin with the line.
func parse(base string, text []byte) (*Document, error) {
	var doc yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&doc); err != nil && err != io.EOF {
		return nil, fmt.Errorf(" %w", err)
	}
	var extra yaml.Node
	if err := d.Decode(&extra); err != io.EOF {
		return nil, fmt.Errorf("%d: --- begins another document: write all keys into one", max(1, extra.Line))
	}
	g := &Document{Flags: map[string][]string{}, Lines: map[string]int{}, doc: &doc}
	if doc.Kind == 0 {
		return nil, fmt.Errorf("1: nothing in it: want members")
	}
	err := pairs(doc.Content[0], "the file", func(key string, keyNode, value *yaml.Node) error {
		switch {
		case key == "members":
			return g.addMembers(base, value)
		case !slices.Contains(Keys, key):
			return fmt.Errorf("%d: %s: want members, or one of %s", keyNode.Line, key, strings.Join(Keys, ", "))
		}
		list := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode && key == listKey {
			list = value.Content
		}
		g.Lines[key] = keyNode.Line
		for _, v := range list {
			text := textOf(v)
			if text == "" {
				return fmt.Errorf("%d: %s: want a value", v.Line, key)
			}
			g.Flags[key] = append(g.Flags[key], text)
		}
		if (key == "key" && value.Value != "none" || key == "meta") && !filepath.IsAbs(value.Value) {
			return fmt.Errorf("%d: %s: %q: want an absolute path", keyNode.Line, key, value.Value)
		}
		return nil
	})
	if err == nil && len(g.Dirs) < 2 {
		err = fmt.Errorf("%d: members: %d: a group has 2 or more", doc.Line, len(g.Dirs))
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

func pairs(mapping *yaml.Node, subject string, f func(key string, keyNode, value *yaml.Node) error) error {
	if mapping.Kind != yaml.MappingNode {
		return fmt.Errorf("%d: %s: want lines KEY: VALUE", mapping.Line, subject)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		keyNode := mapping.Content[i]
		if seen[keyNode.Value] {
			return fmt.Errorf("%d: %s: it is there twice", keyNode.Line, keyNode.Value)
		}
		seen[keyNode.Value] = true
		if err := f(keyNode.Value, keyNode, mapping.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// addMembers adds the nodes. Either all of them have failure domains, or none has.
func (g *Document) addMembers(base string, list *yaml.Node) error {
	if list.Kind != yaml.SequenceNode {
		return fmt.Errorf("%d: members: want a list of - dir: DIR", list.Line)
	}
	lines, domains := map[string]int{}, map[string]string{}
	for i, m := range list.Content {
		wrong := func(line int, format string, args ...any) error {
			return fmt.Errorf("%d: member %d: %s", line, i, fmt.Sprintf(format, args...))
		}
		var dir, domain string
		err := pairs(m, fmt.Sprint("member ", i), func(key string, keyNode, value *yaml.Node) error {
			target := map[string]*string{"dir": &dir, "domain": &domain}[key]
			if target != nil {
				*target = textOf(value)
			}
			if target == nil || *target == "" {
				return wrong(keyNode.Line, "%s: want dir: DIR, domain: what fails together", key)
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
		g.Dirs = append(g.Dirs, dir)
		if domain != "" {
			domains[dir] = domain
		}
		if len(domains) > 0 && len(domains) <= i {
			return wrong(m.Line, "some members have a domain, and some have none: give all one")
		}
	}
	if len(domains) > 0 {
		g.Domains = domains
	}
	return nil
}

func scalarNode(value string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: value} }

func memberNode(dir string) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{scalarNode("dir"), scalarNode(dir)}}
}

// Absolute returns a directory here by its whole path, as group files have it.
func Absolute(dir string) string {
	if a, err := ssh.Parse(dir); err == nil && a.Host == "" {
		if absolute, err := filepath.Abs(dir); err == nil {
			return absolute
		}
	}
	return dir
}

// Rewrite adds members to a group file, and removes some.
func Rewrite(name string, add, remove []string, tolerate string) error {
	g, err := Read(name) // as it is by now, and by this name: directories that are relative lie beside it
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
	mapping := g.doc.Content[0]
	if tolerate != "" && g.Flags["tolerate"] == nil {
		mapping.Content = append([]*yaml.Node{scalarNode("tolerate"), scalarNode(tolerate)}, mapping.Content...)
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		switch value := mapping.Content[i+1]; mapping.Content[i].Value {
		case "members":
			var list []*yaml.Node
			for n, member := range value.Content {
				if !slices.Contains(remove, g.Dirs[n]) {
					list = append(list, member)
				}
			}
			for _, dir := range add {
				if !slices.Contains(g.Dirs, dir) { // else another process has added it
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
	return disk.WriteMode(disk.OS, name, text, info.Mode())
}
