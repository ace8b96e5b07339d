// Command mutation tests the tests: it changes the code in one small way after the other
// and reports the changes that no test notices.
//
//	go run ./internal/mutation [flags] PACKAGES...
//
// All changes are compiled in at once, each behind a condition that package mutant
// decides by an environment variable, so a mutant costs no build. The checkout is never
// written to: tests are built and run in a copy of the module, in the folder of the results:
//
//	results.jsonl  what became of each mutant
//	table.txt      the counts for each package
//	survivors.txt  those to look at
//
// A mutant's tests are those that reach its place, of all packages. It is killed if one
// fails, or takes more than -patience times as long, or more memory than -memory.
// Survivors that are equivalent to the original are in explained.txt, with the reason.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A config is what the flags say, and what workers share.
type config struct {
	root      string // of the module
	dir       string
	out       io.Writer
	workers   int
	budget    time.Duration
	memory    int64
	patience  int
	tests     string
	only      *regexp.Regexp
	sample    int
	seed      uint64
	survivors string
	explained string
	resume    bool
	list      bool
	dry       bool
	broken    []string // tests that fail with no mutant
	killers   sync.Map // the test that killed the last mutant of a function
	log       sync.Mutex
}

func main() {
	c := &config{out: os.Stdout}
	only := ""
	gigabytes := 6
	flag.StringVar(&c.dir, "o", filepath.Join(os.TempDir(), "mutants"), "folder for results and scratch")
	flag.IntVar(&c.workers, "j", runtime.NumCPU(), "mutants at the same time")
	flag.DurationVar(&c.budget, "budget", time.Minute, "test time for a mutant")
	flag.IntVar(&c.patience, "patience", 5, "times as long a test may take with a mutant; more where other programs run, or what they delay counts as noticed")
	flag.IntVar(&gigabytes, "memory", gigabytes, "address space of a test process, in GiB")
	flag.StringVar(&c.tests, "tests", "./...", "packages whose tests are run, with spaces between")
	flag.StringVar(&only, "only", "", "only mutants whose file:function matches this regular expression")
	flag.IntVar(&c.sample, "sample", 0, "so many mutants, by chance; 0 is all")
	flag.Uint64Var(&c.seed, "seed", 1, "of the sample")
	flag.StringVar(&c.survivors, "survivors", "", "only the survivors in this earlier results.jsonl")
	flag.StringVar(&c.explained, "explained", "internal/mutation/explained.txt", "file of explained survivors")
	flag.BoolVar(&c.resume, "resume", false, "keep the outcomes in the folder whose source has not changed")
	flag.BoolVar(&c.list, "list", false, "list mutants, and explanations of mutants that are gone; run nothing")
	flag.BoolVar(&c.dry, "dry", false, "see which tests reach what, and run no mutant")
	flag.Parse()
	c.memory = int64(gigabytes) << 30
	var err error
	if c.only, err = regexp.Compile(only); err == nil && flag.NArg() == 0 {
		err = fmt.Errorf("want packages, such as ./plan")
	}
	if err == nil {
		c.root, err = os.Getwd()
	}
	if err == nil {
		err = c.run(flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

func (c *config) progress(format string, args ...any) {
	c.log.Lock()
	defer c.log.Unlock()
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

func (c *config) results() string { return filepath.Join(c.dir, "results.jsonl") }

// runner returns what runs the tests of a worker.
func (c *config) runner(worker int) *runner {
	return &runner{memory: c.memory, temp: filepath.Join(c.dir, fmt.Sprintf("tmp.%d", worker))}
}

func (c *config) run(patterns []string) (err error) {
	if _, err := os.Stat(filepath.Join(c.root, "go.mod")); err != nil {
		return fmt.Errorf("run it in the module's root: %w", err)
	}
	if c.list {
		prog, err := load(c.root, patterns)
		if err != nil {
			return err
		}
		for _, p := range c.chosen(prog.points, nil) {
			fmt.Fprintf(c.out, "%s:%d:%d: %s: %s: %s\n", p.File, p.Line, p.Column, p.Function, p.Operator, p.Change())
		}
		reasons, err := readExplained(c.explained)
		if err != nil {
			return err
		}
		stale(os.Stderr, c.root, prog.points, nil, reasons)
		return nil
	}
	if c.dir, err = filepath.Abs(c.dir); err != nil {
		return err
	}
	root := filepath.Join(c.dir, "tree")
	if err := snapshot(c.root, root); err != nil {
		return err
	}
	prog, err := load(root, patterns)
	if err != nil {
		return err
	}
	c.progress("%d mutants in %d packages", len(prog.points), len(prog.packages))
	binaries, err := prog.testsOf(strings.Fields(c.tests))
	if err != nil {
		return err
	}
	if err := prog.build(c.dir, binaries); err != nil {
		return err
	}
	c.progress("built the tests of %d packages", len(binaries))
	tests, err := measure(c, binaries)
	if err != nil {
		return err
	}
	reaching := make([][]*test, len(prog.points)+1)
	for _, t := range tests {
		if t.Broken {
			c.broken = append(c.broken, t.binary.Package+" "+t.Name)
		}
		for _, id := range t.Points {
			reaching[id] = append(reaching[id], t)
		}
	}
	return c.tryAll(prog, reaching)
}

// tryAll runs the mutants and reports. What is done when the process is interrupted is
// in the results.
func (c *config) tryAll(prog *program, reaching [][]*test) error {
	var before, outcomes []*Outcome
	var err error
	if c.survivors != "" {
		if before, err = readOutcomes(c.survivors); err != nil {
			return err
		}
	}
	if c.resume {
		if outcomes, err = readOutcomes(c.results()); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	points := c.chosen(prog.points, before)
	points, outcomes = without(points, outcomes)
	c.project(points, reaching)
	if c.dry {
		return nil
	}
	if err := writeOutcomes(c.results(), outcomes); err != nil {
		return err
	}
	file, err := os.OpenFile(c.results(), os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	defer file.Close()
	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt, syscall.SIGTERM)
	start, done := time.Now(), 0
	var mutex sync.Mutex
	err = c.inParallel(len(points), func(worker, i int) error {
		select {
		case s := <-interrupt:
			return fmt.Errorf("%v; -resume goes on from here", s)
		default:
		}
		p := points[i]
		o, err := c.try(worker, p, reaching[p.ID])
		if err != nil {
			return err
		}
		mutex.Lock()
		defer mutex.Unlock()
		done++
		outcomes = append(outcomes, o)
		if o.alive() || done%50 == 0 {
			elapsed := time.Since(start)
			rest := time.Duration(float64(elapsed) / float64(done) * float64(len(points)-done))
			c.progress("%d of %d, %v, %v to go: %s: %s", done, len(points), elapsed.Round(time.Second), rest.Round(time.Second), o.Outcome, o.Key())
		}
		return json.NewEncoder(file).Encode(o)
	})
	return errors.Join(err, report(c, prog.points, outcomes, prog.root))
}

// chosen returns the points that the flags choose, of an earlier run's survivors if
// there is one.
func (c *config) chosen(points []*Point, before []*Outcome) []*Point {
	alive := map[string]bool{}
	for _, o := range before {
		alive[o.Key()] = o.alive()
	}
	var all []*Point
	for _, p := range points {
		if c.only.MatchString(p.File+":"+p.Function) && (before == nil || alive[p.Key()]) {
			all = append(all, p)
		}
	}
	if c.sample > 0 && c.sample < len(all) {
		chance := rand.New(rand.NewPCG(c.seed, 0))
		chance.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:c.sample]
		slices.SortFunc(all, func(a, b *Point) int { return int(a.ID) - int(b.ID) })
	}
	return all
}

// without returns the points that have no outcome yet, and the outcomes of those that
// have, where they are now.
func without(points []*Point, outcomes []*Outcome) ([]*Point, []*Outcome) {
	known := map[string]*Outcome{}
	for _, o := range outcomes {
		known[o.Key()+o.Sum] = o
	}
	var left []*Point
	var kept []*Outcome
	for _, p := range points {
		if o := known[p.Key()+p.Sum]; o != nil {
			o.Point = *p
			kept = append(kept, o)
		} else {
			left = append(left, p)
		}
	}
	return left, kept
}

// project says how long it would take if all mutants survived.
func (c *config) project(points []*Point, reaching [][]*test) {
	type sum struct {
		mutants, unreached int
		worst              time.Duration
	}
	sums := map[string]*sum{}
	for _, p := range points {
		s := sums[p.Package]
		if s == nil {
			s = new(sum)
			sums[p.Package] = s
		}
		s.mutants++
		took := time.Duration(0)
		for _, t := range reaching[p.ID] {
			took += t.Took
		}
		s.worst += min(took, c.budget)
		if len(reaching[p.ID]) == 0 {
			s.unreached++
		}
	}
	for name, s := range sums {
		c.progress("%s: %d mutants to run, %d not reached, at most %v of tests", name, s.mutants, s.unreached, s.worst.Round(time.Second))
	}
}

// checksum returns that of a file.
func checksum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return fmt.Sprintf("%x", h.Sum(nil)), err
}
