package main

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"volley/internal/mutation/mutant"
)

// A test is a top-level test, example or fuzz test.
type test struct {
	Name   string
	Took   time.Duration // with no mutant
	Points []uint32      // that it reaches
	Broken bool          // it fails with no mutant, and finds none
	binary *testBinary
}

// names returns the tests of a binary.
func (t *testBinary) names() ([]string, error) {
	cmd := exec.Command(t.path, "-test.list", ".*")
	cmd.Dir = t.dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the tests of %s: %w", t.Package, err)
	}
	var names []string
	for _, name := range strings.Fields(string(out)) {
		if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Example") {
			names = append(names, name)
		}
	}
	return names, nil
}

// measure runs every test alone, once to time it and once to see which points it reaches.
// One that fails is left out. To resume is to take what an earlier run of the same
// binaries found.
func measure(c *config, binaries []*testBinary) ([]*test, error) {
	var tests []*test
	var jobs []func(int) error
	for _, b := range binaries {
		names, err := b.names()
		if err != nil {
			return nil, err
		}
		known := map[string]*test{}
		path := filepath.Join(c.dir, "reach", filepath.Base(b.reach)+".json")
		if c.resume {
			if known, err = remembered(path, b); err != nil {
				return nil, err
			}
		}
		left := sync.WaitGroup{}
		left.Add(len(names))
		var mine []*test
		for _, name := range names {
			t := &test{Name: name, binary: b}
			mine = append(mine, t)
			if k := known[name]; k != nil && !k.Broken {
				t.Took, t.Points = k.Took, k.Points
				left.Done()
				continue
			}
			jobs = append(jobs, func(worker int) error {
				defer left.Done()
				return t.measure(c, worker)
			})
		}
		jobs = append(jobs, func(int) error {
			left.Wait()
			return remember(path, b, mine)
		})
		tests = append(tests, mine...)
	}
	return tests, c.inParallel(len(jobs), func(worker, i int) error { return jobs[i](worker) })
}

// measure runs one test.
func (t *test) measure(c *config, worker int) error {
	record := filepath.Join(c.dir, fmt.Sprintf("reached.%d", worker))
	if err := os.Remove(record); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, path := range []string{t.binary.path, t.binary.reach} {
		r, err := c.runner(worker).run(t.binary, path, []string{t.Name}, 30*time.Minute, mutant.ReachVariable+"="+record)
		if err != nil {
			return err
		}
		if r.failed || r.timeout {
			t.Broken = true
			c.progress("%s %s fails with no mutant, and is left out:\n%s", t.binary.Package, t.Name, r.output)
			return nil
		}
		if path == t.binary.path {
			t.Took = r.took
		}
	}
	data, err := os.ReadFile(record)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for len(data) >= 4 {
		t.Points = append(t.Points, binary.LittleEndian.Uint32(data))
		data = data[4:]
	}
	slices.Sort(t.Points)
	t.Points = slices.Compact(t.Points) // of processes that the test started, too
	c.progress("%s %s: %v, %d points", t.binary.Package, t.Name, t.Took.Round(time.Millisecond), len(t.Points))
	return nil
}

// A memory is what a file says of the tests of a binary.
type memory struct {
	Binary string // its checksum
	Tests  []*test
}

func remembered(path string, b *testBinary) (map[string]*test, error) {
	sum, err := checksum(b.reach)
	if err != nil {
		return nil, err
	}
	var m memory
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	known := map[string]*test{}
	if err != nil || m.Binary != sum {
		return known, nil // and it is measured again
	}
	for _, t := range m.Tests {
		known[t.Name] = t
	}
	return known, nil
}

func remember(path string, b *testBinary, tests []*test) error {
	sum, err := checksum(b.reach)
	if err != nil {
		return err
	}
	data, err := json.Marshal(memory{sum, tests})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o666)
}

// A batch is tests that run in one process.
type batch struct {
	binary *testBinary
	names  []string
	took   time.Duration
}

// A batch of short tests takes at most so long.
const (
	short      = 50 * time.Millisecond
	batchLimit = time.Second
)

// batches returns in which order to run tests for a mutant of a package: those of the
// package first, short ones first.
func batches(pkg string, tests []*test) []batch {
	tests = slices.Clone(tests)
	rank := func(t *test) int {
		if t.binary.Package == pkg {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(tests, func(a, b *test) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Took, b.Took))
	})
	var all []batch
	open := map[*testBinary]int{} // the batch of short tests that is not full, and 1
	for _, t := range tests {
		i := open[t.binary] - 1
		if t.Took < short && i >= 0 && all[i].took < batchLimit {
			all[i].names = append(all[i].names, t.Name)
			all[i].took += t.Took
			continue
		}
		all = append(all, batch{t.binary, []string{t.Name}, t.Took})
		if t.Took < short {
			open[t.binary] = len(all)
		}
	}
	return all
}
