package group

import (
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// What a manifest may have of patterns.
const (
	mostExcludes = 1000
	mostPattern  = 4096 // bytes
)

// excludes are patterns, in the syntax of gitignore, of what is not protected. They are relative to the node's directory.
type excludes []string

func (x excludes) validate() error {
	if len(x) > mostExcludes {
		return fmt.Errorf("exclude: %d patterns: want %d or fewer", len(x), mostExcludes)
	}
	for _, p := range x {
		switch _, _, glob := pattern(p); {
		case p == "" || p[0] == '#' || len(p) > mostPattern || strings.Contains(p, "\x00"):
			return fmt.Errorf("exclude: %.100q: want a pattern as in .gitignore", p)
		case strings.Contains(p, "[:"):
			return fmt.Errorf("exclude: %q: named classes are not known: write the characters out", p)
		case !doublestar.ValidatePattern(glob):
			return fmt.Errorf("exclude: %q: the pattern has no end", p)
		}
	}
	return nil
}

// pattern takes a pattern apart: whether it includes again, whether it is of directories alone, and what doublestar matches.
func pattern(p string) (includes, dirs bool, glob string) {
	if !strings.HasSuffix(p, `\ `) {
		p = strings.TrimRight(p, " ")
	}
	p, includes = strings.CutPrefix(p, "!")
	p, dirs = strings.CutSuffix(p, "/")
	if !strings.Contains(p, "/") {
		p = "**/" + p
	}
	if p = strings.TrimPrefix(p, "/"); strings.HasSuffix(p, "/**") {
		p += "/*" // not the directory itself
	}
	return includes, dirs, braces.Replace(p)
}

// braces quotes what has a meaning for doublestar alone.
var braces = strings.NewReplacer(`\\`, `\\`, `\{`, `\{`, `\}`, `\}`, "{", `\{`, "}", `\}`)

// match reports whether a name is excluded, the directory of which is not. The last pattern that fits decides.
func (x excludes) match(name string, dir bool) bool {
	for i := len(x) - 1; i >= 0; i-- {
		includes, dirs, glob := pattern(x[i])
		if fits, _ := doublestar.Match(glob, name); fits && (dir || !dirs) {
			return !includes
		}
	}
	return false
}

// entry reports whether an entry is excluded, or a directory above it.
func (x excludes) entry(e *Entry) bool {
	if len(x) == 0 || e.Path == "." {
		return false
	}
	for up := path.Dir(string(e.Path)); up != "."; up = path.Dir(up) {
		if x.match(up, true) {
			return true
		}
	}
	return x.match(string(e.Path), e.Type == typeDir)
}
