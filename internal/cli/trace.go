package cli

import (
	"io"
	"os"
	"path/filepath"
	"slices"

	"volley/internal/disk"
)

// checkTrace refuses a trace whose file may not be replaced, is a source, or is one that the output directory gets.
func (o *runOptions) checkTrace(sources, names []string) error {
	if o.trace == "" {
		return nil
	}
	if o.dryRun {
		return usagef("--trace and --dry-run: a dry run does nothing that takes time; leave one of them out")
	}
	if err := checkOutputFile("--trace", o.trace, ""); err != nil {
		return err
	}
	there, err := os.Stat(o.trace)
	switch {
	case err == nil && disk.Among(there, sources):
		return usagef("--trace %s: it is an input, and would be lost: choose another name", o.trace)
	case err == nil && !o.force:
		return usagef("--trace %s: it is there already; choose another name, or --force to replace it", o.trace)
	}
	if dir, err := os.Stat(filepath.Dir(o.trace)); err == nil && disk.Among(dir, []string{o.output}) && slices.Contains(names, filepath.Base(o.trace)) {
		return usagef("--trace %s: the result has a file of that name: choose another", o.trace)
	}
	return nil
}

// writeTrace writes the trace, if one is wanted.
func (o *runOptions) writeTrace() error {
	if o.trace == "" || o.party.Rank() > 0 {
		return nil
	}
	return writeFile("--trace", o.trace, func(w io.Writer) error {
		_, err := o.recorder.WriteTo(w)
		return err
	})
}
