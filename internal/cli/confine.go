package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"volley/engine"
)

// A confinement is what a key of ssh permits: authorized_keys has its flags, and what a launch sends is checked by it.
type confinement struct {
	only     []string // directories and files; nil: all
	commands bool     // of members
}

const onlyFlag, allowCommandsFlag = "only", "allow-commands"

// Verbs and flags that a confined rank takes: every other one is refused. A path has to lie within. What --add, --believe
// and --remove name is compared, and not opened.
var (
	confinedVerbs = []string{"protect", "verify", "status", "recover", resizeVerb, "unprotect", snapshotsVerb, "group check"}
	confinedFlags = []string{"add", "allow-changed", "allow-deleted", "believe", "beyond", "cores", "deleted", "digest", "dry-run", "exclude", "file", "force", "full", "group-size",
		"json", "latest", "layout", "limit-rate", "log-format", "matrix", "max-changed", "max-deleted", "memory", "network", "nice", "one-file-system", "progress", "quiet",
		"remove", "retain", "revert", "root", "step", "strict", "timeout", "tolerate", "verbose", "yes"}
	confinedPaths = []string{"key", "meta", "to"}
)

// asked returns an error where a user of the key has asked for another command: sshd runs this one all the same.
func (c *confinement) asked(command string) error {
	switch {
	case c.only == nil || command == "" || strings.HasSuffix(command, " "+rankVerb):
		return nil
	case strings.Contains(command, "sha256sum"):
		return usagef("this key runs the volley that is here: leave --copy-binary out")
	}
	return usagef("this key starts volley for ranks alone: %q is not run", command)
}

// admit returns what a launch has sent with paths that are resolved, or an error where it asks for more than it may. The
// verb gets nothing but what was checked.
func (c *confinement) admit(first start) (start, error) {
	if c.only == nil {
		return first, nil
	}
	if first.Commanded && !c.commands {
		return first, usagef("this key does not run pre and post of a group file: --%s in authorized_keys permits them", allowCommandsFlag)
	}
	if first.Variable != "" {
		return first, usagef("this key does not tell what %s is: write the domain of each member into the group file", first.Variable)
	}
	verb, rest, err := newCommand().Find(first.Args)
	if err == nil {
		err = verb.ParseFlags(rest)
	}
	if err != nil {
		return first, usage(err)
	}
	_, name, _ := strings.Cut(verb.CommandPath(), " ")
	if !slices.Contains(confinedVerbs, name) {
		return first, usagef("this key does not run the verb %s: it runs %s", name, strings.Join(confinedVerbs, ", "))
	}
	var paths []*string
	dirs := slices.Clone(verb.Flags().Args())
	for i := range dirs {
		if first.Absent != "" { // it stands for a node of another host, and its directory is not this host's
			dirs[i] = filepath.Join(c.only[0], "absent")
		}
		paths = append(paths, &dirs[i])
	}
	paths = append(paths, &first.Dir)
	if first.Look != nil {
		look := *first.Look
		first.Look = &look
		paths = append(paths, &look.Dir, &look.Meta)
	}
	for _, path := range paths {
		if *path, err = c.within(*path); err != nil {
			return first, err
		}
	}
	verb.Flags().Visit(func(f *pflag.Flag) {
		switch {
		case err != nil || slices.Contains(confinedFlags, f.Name):
		case !slices.Contains(confinedPaths, f.Name):
			err = usagef("this key does not permit --%s", f.Name)
		case f.Name != "key" || f.Value.String() != "none":
			var path string
			if path, err = c.within(f.Value.String()); err == nil {
				err = f.Value.Set(path)
			}
		}
	})
	first.Args = append(append(forwarded(verb), "--"), dirs...)
	return first, err
}

// terms returns an error where a rank would read files elsewhere to listen.
func (c *confinement) terms(run engine.Run) error {
	for _, path := range []string{run.Certificate, run.Key, run.Authority} {
		if _, err := c.within(path); err != nil {
			return err
		}
	}
	return nil
}

// within returns the path that a name leads to, or an error where that is not within what the key permits.
func (c *confinement) within(name string) (string, error) {
	if c.only == nil || name == "" {
		return name, nil
	}
	path, err := resolve(name)
	if err != nil {
		return "", usagef("this key permits %s alone, and %s cannot be followed: %w", strings.Join(c.only, ", "), name, err)
	}
	for _, only := range c.only {
		dir, err := resolve(only)
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
	return "", usagef("this key permits %s alone: %s%s lies elsewhere", strings.Join(c.only, ", "), name, leads)
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
		switch _, there := os.Lstat(path); {
		case err == nil:
			return filepath.Join(real, rest), nil
		case !errors.Is(err, fs.ErrNotExist), there == nil:
			return "", fmt.Errorf("%s: %w", path, err)
		}
	}
}
