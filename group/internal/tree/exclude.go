package tree

import (
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// What a manifest may have of patterns.
const (
	MostExcludes = 1000
	MostPattern  = 4096 // bytes
)

// Excludes are patterns, in the syntax of gitignore, of what is not protected, or of what alone comes back. They are
// relative to the node's directory.
type Excludes []string

func (x Excludes) Validate() error { return x.Check("exclude") }

// Check returns an error of patterns that are no patterns, and calls them by what they are for.
func (x Excludes) Check(option string) error {
	if len(x) > MostExcludes {
		return fmt.Errorf("%s: %d patterns: want %d or fewer", option, len(x), MostExcludes)
	}
	for _, p := range x {
		switch _, _, glob := pattern(p); {
		case p == "" || p[0] == '#' || len(p) > MostPattern || strings.Contains(p, "\x00"):
			return fmt.Errorf("%s: %.100q: want a pattern as in .gitignore", option, p)
		case strings.Contains(p, "[:"):
			return fmt.Errorf("%s: %q: named classes are not known: write the characters out", option, p)
		case !doublestar.ValidatePattern(glob):
			return fmt.Errorf("%s: %q: the pattern has no end", option, p)
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

// Match reports whether patterns fit a name, the directory of which is not. The last pattern that fits decides.
func (x Excludes) Match(name string, dir bool) bool {
	for i := len(x) - 1; i >= 0; i-- {
		includes, dirs, glob := pattern(x[i])
		if fits, _ := doublestar.Match(glob, name); fits && (dir || !dirs) {
			return !includes
		}
	}
	return false
}

// Entry reports whether patterns fit an entry, or a directory above it.
func (x Excludes) Entry(e *Entry) bool {
	if len(x) == 0 || e.Path == "." {
		return false
	}
	for parent := path.Dir(string(e.Path)); parent != "."; parent = path.Dir(parent) {
		if x.Match(parent, true) {
			return true
		}
	}
	return x.Match(string(e.Path), e.Type == TypeDir)
}
