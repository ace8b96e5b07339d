package disktest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
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
	Remaining    int      // calls that the run makes after it
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
			if err := s.interrupt(x, c, len(calls)-1-c.N); err != nil {
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
func (s *Sweep) interrupt(x Interruption, call Call, remaining int) error {
	interrupted := &Interrupted{Interruption: x, Machine: s.Machine.Clone(), Call: call, Remaining: remaining, Rand: rand.New(rand.NewPCG(uint64(call.N), 5))}
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
