package tune

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"volley/internal/disk"
	"volley/internal/located"
)

// Format and Version name the form of a file.
const (
	Format  = "volley-tune"
	Version = 3
)

// Variable is the environment variable that names another file than the usual one, or is "off" for none.
const Variable = "VOLLEY_TUNE"

const disabled = "off"

// Path returns the file that runs read: the one that [Variable] names, or volley/tune.json in the user's configuration
// directory. It is empty where the variable is "off". It returns an error where the user has no such directory.
func Path() (string, error) {
	switch named := os.Getenv(Variable); named {
	case "":
	case disabled:
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

// Find returns the result in the file of [Path] that fits a platform best, or nil where none does: of the same
// transport, on one host or on several as there. Of these it is one on the same hosts, else one of about as many ranks,
// else the newest. What the platform does not say may be anything. There is none, either, where nothing was measured
// yet or [Variable] is "off"; a file that the variable names has to be there.
func Find(platform Platform) (*Result, error) {
	path, err := Path()
	if err != nil || path == "" {
		return nil, nil
	}
	list, err := Load(path)
	named := os.Getenv(Variable) != ""
	missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) // where the home is /dev/null, say
	switch {
	case missing && !named:
		return nil, nil
	case missing:
		return nil, fmt.Errorf("%w: make it with volley tune, or unset %s, which names it", err, Variable)
	case err != nil:
		return nil, fmt.Errorf("%w; or set %s=%s to do without it", err, Variable, disabled)
	}
	list = slices.DeleteFunc(list, func(r *Result) bool {
		return platform.Transport != "" && r.Transport != platform.Transport || len(platform.Hosts) > 0 && (len(r.Hosts) > 1) != (len(platform.Hosts) > 1)
	})
	if len(list) == 0 {
		return nil, nil
	}
	otherHosts := func(r *Result) int {
		if slices.Equal(r.Hosts, platform.Hosts) {
			return 0
		}
		return 1
	}
	unlike := func(r *Result) float64 {
		if platform.Ranks == 0 {
			return 0
		}
		return math.Abs(math.Log(float64(r.Ranks) / float64(platform.Ranks)))
	}
	return slices.MinFunc(list, func(a, b *Result) int {
		return cmp.Or(otherHosts(a)-otherHosts(b), cmp.Compare(unlike(a), unlike(b)), b.Date.Compare(a.Date))
	}), nil
}

// longest is more bytes than any file has that was written here.
const longest = 16 << 20

// ErrOld is wrapped by the error of a file of an older version.
var ErrOld = errors.New("was written by an older volley")

// Load reads the file at path. The error names it, and the line that is to blame.
func Load(path string) ([]*Result, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := decode(f)
	switch {
	case errors.Is(err, ErrOld):
		return nil, fmt.Errorf("%s %w: measure again with volley tune", path, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w: move it away and measure again with volley tune", path, err)
	}
	return list, nil
}

func decode(r io.Reader) ([]*Result, error) {
	text, err := located.Read(r, longest)
	if err != nil {
		return nil, err
	}
	var head struct{ Format, Version json.RawMessage }
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, located.Wrong(text, err)
	}
	version, err := strconv.Atoi(string(head.Version))
	switch {
	case string(head.Format) != `"`+Format+`"`:
		return nil, fmt.Errorf("format: %s: want %q", cmp.Or(string(head.Format), "missing"), Format)
	case err != nil || version < 0 || version > Version:
		return nil, fmt.Errorf("version: %s: this volley reads version %d", cmp.Or(string(head.Version), "missing"), Version)
	case version < Version:
		return nil, fmt.Errorf("%w: version %d, this one reads %d", ErrOld, version, Version)
	}
	list := []*Result{}
	err = located.List(text, "results", func(d *json.Decoder) error {
		d.DisallowUnknownFields()
		r := new(Result)
		if err := d.Decode(r); err != nil {
			return err
		}
		list = append(list, r)
		return r.validate()
	})
	return list, err
}

// validate returns an error that names what cannot have been measured.
func (r *Result) validate() error {
	if r.Transport == "" || r.Ranks < 2 {
		return fmt.Errorf("transport %q, %d ranks: want a name, and 2 ranks or more", r.Transport, r.Ranks)
	}
	if err := r.Network.Validate(); err != nil {
		return err
	}
	for i, c := range r.Coding {
		if c.Field == "" || slices.ContainsFunc(r.Coding[:i], func(earlier Coding) bool { return earlier.Field == c.Field }) {
			return fmt.Errorf("coding[%d].field: %q: want a field, each once", i, c.Field)
		}
		for _, seconds := range []float64{c.Cached, c.Uncached} {
			if !(seconds >= 0 && seconds <= time.Hour.Seconds()) {
				return fmt.Errorf("coding[%d]: %v: want seconds, from 0 to %v", i, seconds, time.Hour.Seconds())
			}
		}
	}
	return nil
}

// Check returns the results in the file at path that [Result.Save] keeps. It returns an error where Save must not write
// there: something would be lost, or it is no file. Where the error wraps [ErrOld] Save replaces the file.
func Check(path string) ([]*Result, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil: // Save says what is wrong, if anything
		return nil, nil
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory: name a file", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file: name another", path)
	case info.Size() == 0:
		return nil, nil
	}
	return Load(path)
}

// Save adds the result to the file at path, in place of an earlier one of the same platform, and makes the directory if
// need be. The file is there whole, or as it was before. One of an older version is replaced. What [Check] refuses Save
// does, too. Several may save at a time: the file PATH.lock keeps them apart.
func (r *Result) Save(path string) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // the link stays one
	}
	if _, err := disk.Make(disk.OS, filepath.Dir(path), 0o777); err != nil {
		return err
	}
	lock := flock.New(path + ".lock")
	if lock.Lock() == nil { // where there can be none, Write says so, or one has to do without
		defer lock.Unlock()
	}
	list, err := Check(path)
	if err != nil && !errors.Is(err, ErrOld) {
		return err
	}
	list = slices.DeleteFunc(list, func(earlier *Result) bool {
		return earlier.Transport == r.Transport && earlier.Ranks == r.Ranks && slices.Equal(earlier.Hosts, r.Hosts)
	})
	data, err := json.MarshalIndent(file{Format, Version, append(list, r)}, "", "  ")
	if err != nil {
		return err
	}
	if len(data) >= longest {
		return fmt.Errorf("%s would have more than %d bytes: move it away and measure again", path, longest)
	}
	return disk.WriteFile(path, append(data, '\n'), 0o666)
}

// file is the form of a file.
type file struct {
	Format  string    `json:"format"`
	Version int       `json:"version"`
	Results []*Result `json:"results"`
}
