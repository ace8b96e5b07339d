package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"volley/internal/exit"
)

// A Confinement is what a key of ssh permits: authorized_keys has its flags, and what a launch sends is checked by it.
type Confinement struct {
	Permitted []string // directories and files; nil: all

	// Verbs and flags that a confined rank takes: every other one is refused. What a path names has to lie within. That
	// of a key may be none.
	Verbs, Flags, Paths []string
}

// Asked returns an error where a user of the key has asked for another command: sshd runs this one all the same.
func (c *Confinement) Asked(command string) error {
	if c.Permitted == nil || command == "" || strings.HasSuffix(command, " "+Verb) {
		return nil
	}
	return exit.Usagef("this key starts volley for ranks alone: %q is not run", command)
}

// Admit returns what a launch has sent with paths that are resolved, or an error where it asks for more than it may. The
// verb gets nothing but what was checked.
func (c *Confinement) Admit(first Start) (Start, error) {
	if c.Permitted == nil {
		return first, nil
	}
	if !slices.Contains(c.Verbs, first.Verb) {
		return first, exit.Usagef("this key does not run the verb %s: it runs %s", first.Verb, strings.Join(c.Verbs, ", "))
	}
	first.Flags, first.Paths = slices.Clone(first.Flags), slices.Clone(first.Paths)
	paths := []*string{&first.Dir}
	for i := range first.Paths {
		if first.Absent != "" { // it stands for a node of another host, and its directory is not this host's
			first.Paths[i] = filepath.Join(c.Permitted[0], "absent")
		}
		paths = append(paths, &first.Paths[i])
	}
	for i := range first.Flags {
		switch f := &first.Flags[i]; {
		case slices.Contains(c.Flags, f.Name):
		case !slices.Contains(c.Paths, f.Name):
			return first, exit.Usagef("this key does not permit --%s", f.Name)
		case f.Name != "key" || f.Value != "none":
			paths = append(paths, &f.Value)
		}
	}
	var err error
	for _, path := range paths {
		if *path, err = c.permittedPath(*path); err != nil {
			return first, err
		}
	}
	return first, nil
}

// permittedPath returns the path that a name leads to, or an error where that is not within what the key permits.
func (c *Confinement) permittedPath(name string) (string, error) {
	if c.Permitted == nil || name == "" {
		return name, nil
	}
	path, err := resolve(name)
	if err != nil {
		return "", exit.Usagef("this key permits %s alone, and %s cannot be followed: %w", strings.Join(c.Permitted, ", "), name, err)
	}
	for _, permitted := range c.Permitted {
		dir, err := resolve(permitted)
		if err != nil {
			return "", err
		}
		if path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/") {
			return path, nil
		}
	}
	leads := ""
	if path != name {
		leads = " leads to " + path + ", which"
	}
	return "", exit.Usagef("this key permits %s alone: %s%s lies elsewhere", strings.Join(c.Permitted, ", "), name, leads)
}

// resolve returns the path that a name leads to. Its last parts may be missing, and no link whose target is missing is
// followed: what is made there would be made elsewhere.
func resolve(name string) (string, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	for rest := ""; ; path, rest = filepath.Dir(path), filepath.Join(filepath.Base(path), rest) {
		real, err := filepath.EvalSymlinks(path)
		switch _, missing := os.Lstat(path); {
		case err == nil:
			return filepath.Join(real, rest), nil
		case !errors.Is(err, fs.ErrNotExist), missing == nil:
			return "", fmt.Errorf("%s: %w", path, err)
		}
	}
}
