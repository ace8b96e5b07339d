package session

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley/internal/exit"
	"volley/internal/poll"
	"volley/internal/selection"
)

// Standard names standard input, or output.
const Standard = "-"

// dash is the name of standard input, once it is read, in what libraries say of a file.
var dash = regexp.MustCompile(`(^| )-( has | is |,? line |: EOF)`)

// OpenInput opens a file that the command line names; standard input is for one of them.
func (s *Invocation) OpenInput(name string) (io.ReadCloser, error) {
	switch {
	case name != Standard:
		return os.Open(name)
	case s.LaunchRank != nil || s.Party != nil && s.Party.Job():
		return nil, exit.Usagef("-: each process of several has a standard input of its own: name a file")
	case s.read.Swap(true):
		return nil, exit.Usagef("-: standard input can be read once: name a file for the other")
	}
	return io.NopCloser(s.Stdin), nil
}

// AddFormat adds the flags of the format of what a verb prints, with --json as another name of --format json. The first
// format is the usual one.
func AddFormat(f *pflag.FlagSet, format *string, formats ...string) {
	*format = formats[0]
	f.Var(selection.Word(format, formats...), "format", "`FORMAT`: "+strings.Join(formats, ", "))
	f.BoolFunc("json", "the same as --format json", func(string) error { *format = "json"; return nil })
}

// Stdout returns where a verb prints until it is interrupted.
func Stdout(cmd *cobra.Command) io.Writer {
	return poll.Writer{Context: cmd.Context(), Writer: cmd.OutOrStdout()}
}

// WriteJSON writes a value over lines.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// checkMetrics refuses a name, unless empty, that is no place for a file of metrics.
func checkMetrics(name string) error {
	switch name {
	case "":
		return nil
	case Standard:
		return exit.Usagef("--metrics -: stdout has the report: name a file")
	}
	info, err := os.Stat(name)
	dir, missing := os.Stat(filepath.Dir(name))
	switch {
	case err == nil && !info.Mode().IsRegular():
		return exit.Usagef("--metrics %s: it is there and no regular file: choose another name", name)
	case missing != nil:
		return exit.Usagef("--metrics %s: its directory: %w", name, missing)
	case !dir.IsDir():
		return exit.Usagef("--metrics %s: %s is no directory", name, filepath.Dir(name))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return exit.Usagef("--metrics: %w", err)
	}
	return nil
}
