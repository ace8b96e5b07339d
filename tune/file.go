package tune

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"volley/internal/atomicfile"
)

// Format and Version name the form of a file.
const (
	Format  = "volley-tune"
	Version = 1
)

// Variable is the environment variable that names another file than the usual one,
// or is "off" where none is to be read or written.
const Variable = "VOLLEY_TUNE"

const off = "off"

// Path returns the file that runs read: the one that [Variable] names, or
// volley/tune.json in the user's configuration directory. It is empty where the
// variable is "off". It returns an error where the user has no such directory.
func Path() (string, error) {
	switch named := os.Getenv(Variable); named {
	case "":
	case off:
		return "", nil
	default:
		return named, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "volley", "tune.json"), nil
}

// Default returns what the file of [Path] holds, and false where there is no such
// file: because nothing was measured yet, or because nothing is to be read. A file
// that [Variable] names has to be there.
func Default() (r *Result, ok bool, err error) {
	path, err := Path()
	if err != nil || path == "" {
		return nil, false, nil
	}
	r, err = Load(path)
	if err == nil {
		return r, true, nil
	}
	named := os.Getenv(Variable) != ""
	missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) // where the home is /dev/null, say
	switch {
	case missing && !named:
		return nil, false, nil
	case missing:
		return nil, false, fmt.Errorf("%w: make it with volley tune, or unset %s, which names it", err, Variable)
	}
	return nil, false, fmt.Errorf("%w; or set %s=%s to do without it", err, Variable, off)
}

// longest is more bytes than any file has that was written here.
const longest = 1 << 20

// file is a Result as it lies in a file.
type file struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Result
}

// MarshalJSON returns the result as it lies in a file.
func (r *Result) MarshalJSON() ([]byte, error) {
	type plain Result // without this method
	return json.Marshal(struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
		*plain
	}{Format, Version, (*plain)(r)})
}

// Load reads the file at path. The error names it and, where one is to blame, the
// key in it.
func Load(path string) (*Result, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, longest+1))
	if err != nil {
		return nil, err
	}
	r, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: measure again with volley tune", path, err)
	}
	return r, nil
}

func decode(data []byte) (*Result, error) {
	if len(data) > longest {
		return nil, fmt.Errorf("more than %d bytes: not written by volley tune", longest)
	}
	var head struct { // first, as another version has other keys
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, readable(data, err)
	}
	switch {
	case head.Format != Format:
		return nil, fmt.Errorf("format: %q: want %q", head.Format, Format)
	case head.Version != Version:
		return nil, fmt.Errorf("version: %d: this volley reads version %d", head.Version, Version)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(data, &keys); err != nil {
		return nil, readable(data, err)
	}
	for _, key := range []string{"beta_seconds", "tau_seconds_per_byte", "coding"} { // 0 is a value, too
		if value, ok := keys[key]; !ok || string(value) == "null" {
			return nil, fmt.Errorf("%s: missing", key)
		}
	}
	var content file
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&content); err != nil {
		return nil, readable(data, err)
	}
	if err := content.validate(); err != nil {
		return nil, err
	}
	return &content.Result, nil
}

// readable returns a JSON error with its line and key, and without Go's types.
func readable(data []byte, err error) error {
	line := func(offset int64) int {
		return 1 + bytes.Count(data[:min(max(0, offset), int64(len(data)))], []byte("\n"))
	}
	if kind := new(json.UnmarshalTypeError); errors.As(err, &kind) {
		key := strings.TrimPrefix(kind.Field, "Result.")
		if key == "" {
			key = "the whole"
		}
		return fmt.Errorf("line %d: %s: %s does not fit there", line(kind.Offset), key, kind.Value)
	}
	if syntax := new(json.SyntaxError); errors.As(err, &syntax) {
		return fmt.Errorf("line %d: %w", line(syntax.Offset), err)
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

// longestTime is more than anything here takes, in seconds.
var longestTime = time.Hour.Seconds()

// validate returns an error that names the key whose value cannot have been
// measured.
func (r *Result) validate() error {
	check := func(key string, seconds float64) error {
		if !(seconds >= 0 && seconds <= longestTime) {
			return fmt.Errorf("%s: %v: want seconds, from 0 to %v", key, seconds, longestTime)
		}
		return nil
	}
	if err := check("beta_seconds", r.BetaSeconds); err != nil {
		return err
	}
	if err := check("tau_seconds_per_byte", r.TauSecondsPerByte); err != nil {
		return err
	}
	for i, c := range r.Coding {
		key := func(k string) string { return fmt.Sprintf("coding[%d].%s", i, k) }
		if c.Field == "" {
			return fmt.Errorf("%s: missing", key("field"))
		}
		if slices.ContainsFunc(r.Coding[:i], func(other Coding) bool { return other.Field == c.Field }) {
			return fmt.Errorf("%s: %q: twice", key("field"), c.Field)
		}
		if err := check(key("cached"), c.Cached); err != nil {
			return err
		}
		if err := check(key("uncached"), c.Uncached); err != nil {
			return err
		}
	}
	return nil
}

// Check returns an error where [Result.Save] must not write to path: something
// there would be lost, or is no file.
func Check(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil: // Save says what is wrong, if anything
		return nil
	case info.IsDir():
		return fmt.Errorf("%s is a directory: name a file", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file: name another", path)
	case info.Size() == 0:
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	begin := make([]byte, 1<<10)
	n, err := io.ReadFull(f, begin)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if !bytes.Contains(begin[:n], []byte(`"`+Format+`"`)) { // it may be damaged otherwise
		return fmt.Errorf("%s was not written by volley tune and would be lost: name another file, or remove it", path)
	}
	return nil
}

// Save writes the result to path, in place of an earlier one, and makes the
// directory if need be. The file is there whole, or as it was before. What [Check]
// refuses Save does, too.
func (r *Result) Save(path string) error {
	if err := Check(path); err != nil {
		return err
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // the link stays one
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return atomicfile.Write(path, append(data, '\n'))
}
