package disktest

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"volley/files"
)

// An Errno is an error that file systems give, and the calls that get it.
type Errno struct {
	Name string
	Err  syscall.Errno
	Ops  []string
}

// Ops of calls that have something in common.
var (
	Growing = strings.Fields("create write truncate mkdir symlink link")         // what needs room
	Renamed = strings.Fields("create mkdir symlink link rename exchange remove") // what changes the names in a directory
	Setting = strings.Fields("chmod chown setxattr removexattr settime")
	Looking = strings.Fields("opendir open lstat readdir readlink listxattr syncdir")
	InFiles = strings.Fields("read write sync truncate stat close")
	ByName  = slices.Concat(Renamed, Setting, Looking, []string{"lock"})
)

// Errnos are the errors that are worth trying.
var Errnos = []Errno{
	{"EACCES", syscall.EACCES, ByName},
	{"EPERM", syscall.EPERM, slices.Concat(Renamed, Setting, []string{"open"})}, // immutable, sticky, or another user's
	{"EIO", syscall.EIO, slices.Concat(ByName, InFiles, []string{"syncall"})},
	{"ESTALE", syscall.ESTALE, slices.Concat(ByName, InFiles)},
	{"EROFS", syscall.EROFS, slices.Concat(Renamed, Setting, []string{"open", "write", "truncate", "lock"})},
	{"ENOSPC", syscall.ENOSPC, slices.Concat(Growing, strings.Fields("rename exchange setxattr sync syncdir syncall close lock"))}, // late where writing is put off
	{"EDQUOT", syscall.EDQUOT, slices.Concat(Growing, strings.Fields("rename exchange setxattr sync syncdir syncall close lock"))},
	{"EMFILE", syscall.EMFILE, ByName}, // of each but the last part of a name a directory is opened
	{"ENAMETOOLONG", syscall.ENAMETOOLONG, strings.Fields("create mkdir symlink link rename exchange lstat open")},
	{"EXDEV", syscall.EXDEV, strings.Fields("link rename exchange")},
	{"EMLINK", syscall.EMLINK, strings.Fields("link mkdir rename")},
	{"EBUSY", syscall.EBUSY, strings.Fields("rename exchange remove")},
	{"EFBIG", syscall.EFBIG, strings.Fields("write truncate")},
	{"EINVAL", syscall.EINVAL, strings.Fields("syncdir settime setxattr")},
	{"ENOLCK", syscall.ENOLCK, strings.Fields("lock")},
	{"ENOTSUP", syscall.ENOTSUP, strings.Fields("link symlink exchange chmod chown listxattr setxattr removexattr lock")},
}

// An Interruption is what happens to a run at one of its calls.
type Interruption struct {
	Name    string
	Matters func(Call) bool // whether it matters at a call

	// Strike is called before the call, which fails with the error unless that is nil.
	Strike func(p *Process, c Call, rng *rand.Rand) error

	Ends bool // no call has an effect any more
}

var (
	// Kill ends the process. Of what it is just writing a part may be there.
	Kill = Interruption{"killed", Call.writes, func(p *Process, c Call, rng *rand.Rand) error {
		p.Kill()
		return c.partly(ErrKilled, rng)
	}, true}

	// CutAll cuts the power, and all is lost that was not made last. CutSome loses some of it.
	CutAll = Interruption{"power cut, all lost", Call.writes, func(p *Process, _ Call, _ *rand.Rand) error {
		p.m.PowerCut(nil)
		return nil
	}, true}
	CutSome = Interruption{"power cut, some lost", Call.writes, func(p *Process, _ Call, rng *rand.Rand) error {
		p.m.PowerCut(func(string) bool { return rng.IntN(2) == 0 })
		return nil
	}, true}

	// FullDisk leaves no room in the file system from the call on, also where something is removed.
	FullDisk = Interruption{"disk full from there on", Call.writes, func(p *Process, c Call, _ *rand.Rand) error {
		p.Deny(p.m.Mountpoint(c.Path), syscall.ENOSPC, Growing...)
		return nil
	}, false}

	// TurnReadOnly has nothing written to the file system from the call on, as after an error.
	TurnReadOnly = Interruption{"read-only from there on", Call.writes, func(p *Process, c Call, _ *rand.Rand) error {
		p.m.deny(p, p.m.Mountpoint(c.Path), syscall.EROFS, func(c Call) bool { return c.Writes || c.alters })
		return nil
	}, false}
)

// Failing is what makes one call fail. Of what it writes a part may be there.
func Failing(err error) func(*Process, Call, *rand.Rand) error {
	return func(_ *Process, c Call, rng *rand.Rand) error { return c.partly(err, rng) }
}

// Interruptions are all of them.
func Interruptions() []Interruption {
	list := []Interruption{Kill, CutAll, CutSome, FullDisk, TurnReadOnly}
	for _, e := range Errnos {
		list = append(list, Interruption{e.Name, func(c Call) bool { return slices.Contains(e.Ops, c.Op) }, Failing(e.Err), false})
	}
	return list
}

// Set has the interruption happen at call n.
func (x Interruption) Set(p *Process, n int, rng *rand.Rand) {
	p.hookCall(n, func(c Call) error { return x.Strike(p, c, rng) })
}

// writes reports whether an interruption at a call leaves something else than one before.
func (c Call) writes() bool { return c.Writes }

// Grows reports whether a call needs room.
func (c Call) Grows() bool { return slices.Contains(Growing, c.Op) }

// partly is an error of a call that has written a part.
func (c Call) partly(err error, rng *rand.Rand) error {
	if c.Op == "write" {
		return &Partial{rng.IntN(c.Bytes + 1), err}
	}
	return err
}

// A Sweep interrupts a run at its calls, once in each way.
type Sweep struct {
	Machine *Machine // before the run, which is tried on clones
	Run     func(p *Process) error

	// Check returns what is wrong with what a run has left. It is called for a run without interruption first.
	Check func(x *Interrupted) error

	Interruptions []Interruption // nil: [Interruptions]
	Tries         int            // calls at which each of them is tried; 0: all

	// Concurrent says that a run may make fewer calls than another. One that ends before it is interrupted is no error.
	Concurrent bool

	Rand *rand.Rand // says which calls; nil: the same ones each time
}

// An Interrupted is a run that was interrupted, and has ended.
type Interrupted struct {
	Interruption          // of no name where there was none
	Machine      *Machine // what is left
	Err          error    // of Run
	Call         Call     // where it was
	Rand         *rand.Rand
}

// Test interrupts the run, and returns how often it did.
func (s *Sweep) Test(t testing.TB) (tried int) {
	t.Helper()
	var calls []Call
	uninterrupted := &Interrupted{Machine: s.Machine.Clone(), Rand: rand.New(rand.NewPCG(0, 5))}
	p := uninterrupted.Machine.Process()
	p.Hook = func(c Call) error {
		calls = append(calls, c)
		return nil
	}
	uninterrupted.Err = s.Run(p)
	if p.Kill(); uninterrupted.Err != nil {
		t.Fatalf("not interrupted: %v", uninterrupted.Err)
	}
	if err := s.Check(uninterrupted); err != nil {
		t.Fatalf("not interrupted: %v", err)
	}
	rng := s.Rand
	if rng == nil {
		rng = rand.New(rand.NewPCG(1, 1))
	}
	interruptions := s.Interruptions
	if interruptions == nil {
		interruptions = Interruptions()
	}
	for _, x := range interruptions {
		var matching []Call
		for _, c := range calls {
			if x.Matters(c) {
				matching = append(matching, c)
			}
		}
		if s.Tries > 0 {
			rng.Shuffle(len(matching), func(i, j int) { matching[i], matching[j] = matching[j], matching[i] })
			matching = matching[:min(s.Tries, len(matching))]
		}
		failed := 0
		for _, c := range matching {
			tried++
			if err := s.interrupt(x, c); err != nil {
				t.Errorf("%s at %v: %v", x.Name, c, err)
				if failed++; failed == 3 {
					break
				}
			}
		}
	}
	return tried
}

// interrupt runs it once.
func (s *Sweep) interrupt(x Interruption, call Call) error {
	interrupted := &Interrupted{Interruption: x, Machine: s.Machine.Clone(), Call: call, Rand: rand.New(rand.NewPCG(uint64(call.N), 5))}
	p := interrupted.Machine.Process()
	x.Set(p, call.N, interrupted.Rand)
	interrupted.Err = s.Run(p)
	p.Kill()
	if p.calls <= call.N && !s.Concurrent {
		return fmt.Errorf("the run did not come so far, and ended with %v", interrupted.Err)
	}
	if err := s.Check(interrupted); err != nil {
		return fmt.Errorf("the run ended with %v: %w", interrupted.Err, err)
	}
	return nil
}

// A Committer is a run that puts a result in the place of another, or of none: a row of the sweep that all that commits
// goes through. Whatever happens to the run at a call, there is the one result or the other. Once it has ended well, the
// new one lasts. One more run is done, and leaves nothing behind.
type Committer struct {
	Name    string   // begins with what locks name as the verb
	Machine *Machine // before the run
	Run     func(p *Process) error
	Again   func(p *Process) error // one more run; nil: Run

	// Holds names the result that there is. It returns an error where none is whole, or something of the user's is no more.
	Holds func(x *Interrupted) (string, error)

	Tidy   func(m *Machine) error // returns an error where something is left that is of no result; nil: Holds does
	Undoes bool                   // a run that fails is tidy, too

	Seconds    []Second // that have a turn at a call
	Concurrent bool     // see [Sweep]

	old, renewed string
	alternatives map[string][]string // results that there may be beside a second run, by its interruption
}

// A Second is a run of another process.
type Second struct {
	Name    string
	Run     func(p *Process) error
	Below   string // where the locks lie that matter to it
	Reads   bool   // and has locks that others who read may have, too
	Answers bool   // whoever has a lock
	Locked  bool   // it has its turn only while the first one has a lock: else it would change what is done
}

// errBegun is that of a run that has only begun.
var errBegun = errors.New("only begun")

// Test interrupts the run in each way, as [Sweep.Test] does, and has each second one run at some of its calls.
func (c *Committer) Test(t testing.TB, list []Interruption, tries int, rng *rand.Rand) (tried int) {
	t.Helper()
	c.old, c.alternatives = c.begun(t, c.Machine.Clone()), map[string][]string{}
	list = slices.Clone(list)
	for _, s := range c.Seconds {
		list = append(list, c.taking(t, s))
	}
	sweep := Sweep{Machine: c.Machine, Run: c.Run, Check: c.check, Interruptions: list, Tries: tries, Concurrent: c.Concurrent, Rand: rng}
	return sweep.Test(t)
}

// begun returns the result that a machine has before a run.
func (c *Committer) begun(t testing.TB, m *Machine) string {
	t.Helper()
	result, err := c.Holds(&Interrupted{Machine: m, Err: errBegun, Rand: rand.New(rand.NewPCG(0, 5))})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// check checks what a run has left, and one more run.
func (c *Committer) check(x *Interrupted) error {
	result, err := c.Holds(x)
	if x.Name == "" {
		c.renewed = result
	}
	ends := append(slices.Clone(c.alternatives[x.Name]), c.renewed)
	switch {
	case err != nil:
		return err
	case !slices.Contains(ends, result) && (result != c.old || x.Err == nil):
		return fmt.Errorf("it has %q: before the run it had %q, and is to have one of %q", result, c.old, ends)
	case x.Err == nil:
		err = c.lasts(x, result)
	case c.Undoes && !x.Ends && x.Name != TurnReadOnly.Name && x.Call.Op != "remove":
		err = c.tidy(x.Machine)
	}
	if err != nil {
		return err
	}
	again, run := *x, c.Run
	if c.Again != nil {
		run = c.Again
	}
	if again.Err = run(x.Machine.Process()); again.Err != nil {
		return fmt.Errorf("once more: %w", again.Err)
	}
	if err := cmp.Or(c.lasts(&again, ends...), c.tidy(x.Machine)); err != nil {
		return fmt.Errorf("once more: %w", err)
	}
	return nil
}

// lasts returns an error unless there is one of some results after a power cut that loses all that it can.
func (c *Committer) lasts(x *Interrupted, ends ...string) error {
	cut := *x
	cut.Machine = x.Machine.Clone()
	cut.Machine.PowerCut(nil)
	result, err := c.Holds(&cut)
	if err != nil {
		return fmt.Errorf("after a power cut: %w", err)
	}
	if !slices.Contains(ends, result) {
		return fmt.Errorf("after a power cut it has %q, want one of %q", result, ends)
	}
	return nil
}

func (c *Committer) tidy(m *Machine) error {
	if c.Tidy == nil {
		return nil
	}
	return c.Tidy(m)
}

// taking has a second run begin and end at a call. While the first one has a lock that is in its way, the second is told
// so; else it ends as before the first run or after it.
func (c *Committer) taking(t testing.TB, s Second) Interruption {
	fresh, committed := c.Machine.Clone(), c.Machine.Clone()
	var results []string
	end := func(m *Machine, run func(*Process) error) string {
		err := run(m.Process())
		if !s.Reads && !s.Answers && !s.Locked {
			if result := c.begun(t, m); result != c.old {
				results = append(results, result)
			}
		}
		return fmt.Sprint(err)
	}
	ends := []string{end(fresh, s.Run)}
	end(fresh, c.Run)
	end(committed, c.Run)
	ends = append(ends, end(committed, s.Run))
	name := "beside " + s.Name
	c.alternatives[name] = results
	verb, _, _ := strings.Cut(c.Name, " ")
	return Interruption{Name: name, Matters: func(Call) bool { return true }, Strike: func(p *Process, call Call, _ *rand.Rand) error {
		locked, alone := p.m.locks(p, s.Below)
		if s.Locked && !locked {
			return nil
		}
		err := s.Run(p.m.Process())
		busy := new(files.BusyError)
		told := errors.As(err, &busy) && busy.Holder.Verb == verb
		passes := s.Answers || !locked || !alone && (s.Reads || err != nil) // or is refused for what it sees
		if !told && !(passes && slices.Contains(ends, fmt.Sprint(err))) {
			t.Errorf("%s at %v, with a lock %v: %v: want one of %q", s.Name, call, locked, err, ends)
		}
		return nil
	}}
}

// locks reports whether a process has locks below a path, and whether it has one of them alone.
func (m *Machine) locks(p *Process, top string) (locked, alone bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, x := range m.nodes {
		if x == nil {
			continue
		}
		for _, l := range x.locks {
			if l.holder == p && isBelow(l.path, clean(top)) {
				locked, alone = true, alone || !l.shared
			}
		}
	}
	return locked, alone
}
