package session

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley/internal/disk"
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

// OutputFlags are the flags of a verb that prints one stream: its format, and the file for it.
type OutputFlags struct {
	Session      *Invocation
	Format, file string
	formats      []string
	Pictures     string // command that makes pictures of what is printed; "": there is none
}

// Add adds the flags, with --json as another name of --format json. The first format is the usual one.
func (o *OutputFlags) Add(f *pflag.FlagSet, formats ...string) {
	o.Format, o.formats = formats[0], formats
	f.Var(selection.Choice{Value: &o.Format, Words: formats}, "format", "`FORMAT`: "+strings.Join(formats, ", "))
	f.BoolFunc("json", "the same as --format json", func(string) error { o.Format = "json"; return nil })
	f.StringVarP(&o.file, "output", "o", "", "`FILE` to write instead of stdout; its suffix is the format: "+strings.Join(o.suffixes(), ", "))
}

// suffixes returns what the name of a file in each format ends in.
func (o *OutputFlags) suffixes() (list []string) {
	for _, format := range o.formats {
		list = append(list, strings.Replace("."+format, ".text", ".txt", 1))
	}
	return list
}

// Settle settles the format and checks the file. A format that a flag names counts more than the suffix.
func (o *OutputFlags) Settle(f *pflag.FlagSet) error {
	if o.file == Standard {
		o.file = ""
	}
	suffix := filepath.Ext(o.file)
	if len(suffix) > 1 && !f.Changed("format") && !f.Changed("json") {
		i := slices.Index(o.suffixes(), strings.ToLower(suffix))
		if err := o.refusePicture("-o "+o.file, strings.ToLower(suffix[1:])); err != nil {
			return err
		}
		if i < 0 {
			return exit.Usagef("-o %s: unknown suffix %s: want %s, or name the format with --format", o.file, suffix, strings.Join(o.suffixes(), ", "))
		}
		o.Format = o.formats[i]
	}
	return checkOutputFile("-o", o.file, ", or leave -o out to print")
}

// refusePicture says which command draws, where the format that an argument asks for is that of a picture.
func (o *OutputFlags) refusePicture(argument, format string) error {
	if o.Pictures == "" || slices.Contains(o.formats, format) || !slices.Contains([]string{"svg", "png", "pdf", "tex"}, format) {
		return nil
	}
	return exit.Usagef("%s: pictures are made by %s%s", argument, o.Pictures, labAt())
}

// Write writes what a verb prints: to the file, whole or not at all, or to stdout.
func (o *OutputFlags) Write(cmd *cobra.Command, print func(io.Writer) error) error {
	ctx := cmd.Context()
	if o.file == "" {
		return print(poll.Writer{Context: ctx, Writer: cmd.OutOrStdout()})
	}
	file := &o.Session.file
	file.Lock()
	defer file.Unlock()
	return Placed("-o", disk.WriteStream(disk.OS, o.file, 0o666, false, func(f io.Writer) error {
		w := bufio.NewWriter(f)
		return cmp.Or(print(poll.Writer{Context: ctx, Writer: w}), w.Flush())
	}))
}

// WriteJSON writes a value over lines.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Placed returns the error of writing the file of a flag, which is the caller's to mend where there can be no file.
func Placed(flag string, err error) error {
	if pathError := new(fs.PathError); errors.As(err, &pathError) && pathError.Op == "open" {
		return exit.Usagef("%s: %w", flag, err)
	}
	return err
}

// checkOutputFile refuses a name, unless empty, that is no place for a file. Instead says what else may be done.
func checkOutputFile(flag, name, instead string) error {
	if name == "" {
		return nil
	}
	if name == Standard {
		return exit.Usagef("%s -: stdout has the report: name a file", flag)
	}
	switch info, err := os.Stat(name); {
	case err == nil && !info.Mode().IsRegular():
		return exit.Usagef("%s %s: it is there and no regular file: choose another name%s", flag, name, instead)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return exit.Usagef("%s: %w", flag, err)
	}
	if info, err := os.Stat(filepath.Dir(name)); err != nil {
		return exit.Usagef("%s %s: its directory: %w", flag, name, err)
	} else if !info.IsDir() {
		return exit.Usagef("%s %s: %s is no directory", flag, name, filepath.Dir(name))
	}
	return nil
}
