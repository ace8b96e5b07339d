package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"volley/internal/atomicfile"
)

// addFormat adds --format, and --json as another name of its value json.
func addFormat(f *pflag.FlagSet, format *string, usual string, formats []string) {
	f.StringVar(format, "format", usual, "`FORMAT`: "+strings.Join(formats, ", "))
	f.BoolFunc("json", "the same as --format json", func(string) error { *format = "json"; return nil })
}

// checkFormat refuses the value of a flag that is none of those.
func checkFormat(flag, format string, formats ...string) error {
	if !slices.Contains(formats, format) {
		return usagef("%s %q: want one of %s", flag, format, strings.Join(formats, ", "))
	}
	return nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// writeFile writes a file, which a flag has named, whole or not at all.
func writeFile(flag, name string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	err := atomicfile.Write(name, b.Bytes())
	if at := new(fs.PathError); errors.As(err, &at) && at.Op == "open" {
		return usagef("%s: %w", flag, err)
	}
	return err
}

// checkOutputFile refuses a name, given with a flag, that is no place for a file; empty is
// none. Instead says what else may be done.
func checkOutputFile(flag, name, instead string) error {
	if name == "" {
		return nil
	}
	switch info, err := os.Stat(name); {
	case err == nil && !info.Mode().IsRegular():
		return usagef("%s %s: it is there and no regular file: choose another name%s", flag, name, instead)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return usagef("%s: %w", flag, err)
	}
	if info, err := os.Stat(filepath.Dir(name)); err != nil {
		return usagef("%s %s: its directory: %w", flag, name, err)
	} else if !info.IsDir() {
		return usagef("%s %s: %s is no directory", flag, name, filepath.Dir(name))
	}
	return nil
}
