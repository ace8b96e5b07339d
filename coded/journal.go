package coded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"volley/internal/atomicfile"
	"volley/internal/disk"
)

const journalName = hidden + "commit.json"

const (
	journalFormat  = "volley-commit"
	journalVersion = 1
)

// A journal is what is to be done in a directory.
type journal struct {
	Format  string    `json:"format"`
	Version int       `json:"version"`
	Files   []renamed `json:"files"`            // those that are missing have been renamed already
	Remove  []string  `json:"remove,omitempty"` // after that

	from map[string]string // of those of Files, by To
}

// renamed is a file that gets another name.
type renamed struct {
	From string `json:"from"`
	To   string `json:"to"`
}

func (j *journal) add(from, to string) { j.Files = append(j.Files, renamed{from, to}) }

// where returns the name under which a file is found: a hidden one, until it is renamed.
func (j *journal) where(dir disk.Dir, name string) string {
	if from, ok := j.from[name]; ok {
		if _, err := dir.Lstat(from); err == nil {
			return from
		}
	}
	return name
}

// write writes the journal: a line of JSON, and another with the SHA-256 of that.
func (j *journal) write(dir disk.Dir, perm fs.FileMode) error {
	j.Format, j.Version = journalFormat, journalVersion
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return atomicfile.WriteIn(dir, journalName, disk.Seal(text), perm)
}

// mostText is the bytes that a manifest or a journal may have.
const mostText = 1 << 30

// readJournal returns the journal, or nil where there is none. It follows no link: the user did not name the file.
func readJournal(dir disk.Dir) (*journal, error) {
	if info, err := dir.Lstat(journalName); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file: no run of volley has left it; remove it", filepath.Join(dir.Path(), journalName))
	}
	text, err := disk.ReadText(dir, journalName, mostText)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	j, err := parseJournal(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: it lists files that an interrupted run was giving their names; remove it to give up the hidden ones",
			filepath.Join(dir.Path(), journalName), err)
	}
	return j, nil
}

// journalOf returns the journal for who only reads, empty where there is none that counts.
func journalOf(dir disk.Dir) *journal {
	if j, err := readJournal(dir); j != nil && err == nil {
		return j
	}
	return new(journal)
}

func parseJournal(text []byte) (*journal, error) {
	line, err := disk.Unseal(text)
	j := new(journal)
	if err != nil || json.Unmarshal(line, j) != nil {
		return nil, errors.New("damaged")
	}
	if j.Format != journalFormat || j.Version != journalVersion {
		return nil, fmt.Errorf("format %q version %d: want %q version %d", j.Format, j.Version, journalFormat, journalVersion)
	}
	// Whoever may write into the directory can forge a journal: it speaks only of what a run may rename and remove.
	j.from = map[string]string{}
	for _, f := range j.Files {
		if !strings.HasPrefix(f.From, hidden) || !isName(f.From) || f.From == LockName || f.From == journalName || !validName(f.To) || j.from[f.To] != "" {
			return nil, fmt.Errorf("names %q and %q: want those of a hidden file, and of one file of the directory that it becomes", f.From, f.To)
		}
		j.from[f.To] = f.From
	}
	for _, name := range j.Remove {
		if !codedName.MatchString(name) {
			return nil, fmt.Errorf("name %q to remove: want that of a coded file", name)
		}
	}
	return j, nil
}

// finish does what the journal lists, as far as that has not been done, and removes it.
func (j *journal) finish(dir disk.Dir) error {
	// The run that has written it may have come no further than to its name.
	if err := dir.SyncDir("."); err != nil {
		return err
	}
	for _, f := range j.Files {
		if err := dir.Rename(f.From, f.To); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, name := range j.Remove {
		if err := dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := dir.SyncDir("."); err != nil {
		return err
	}
	if err := dir.Remove(journalName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return dir.SyncDir(".")
}
