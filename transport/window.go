package transport

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"
)

// A HostSharer is a Transport that may know which of its ranks run on one host.
type HostSharer interface {
	// Host returns what the ranks of this rank's host share, the same in every call, or nil, at all ranks of t, where that
	// is not known, or what they do is to travel as messages.
	Host() *Host
}

func hostOf(t Transport) *Host {
	if h, ok := t.(HostSharer); ok {
		return h.Host()
	}
	return nil
}

// HostOf returns what the ranks of t share, or nil unless all run on one host.
func HostOf(t Transport) *Host {
	if h := hostOf(t); h != nil && len(h.Hosts[h.Local]) == t.Size() {
		return h
	}
	return nil
}

// Hosts returns the ranks of t by host, and which host is this rank's, or nil where that is not known.
func Hosts(t Transport) (ranks [][]int, local int) {
	if h := hostOf(t); h != nil {
		return h.Hosts, h.Local
	}
	return nil, 0
}

// OnHost returns the end of t in the group of the ranks that run on its host, for which there is a [HostOf], or nil where
// that is not known.
func OnHost(t Transport) Transport {
	h := hostOf(t)
	switch {
	case h == nil:
		return nil
	case HostOf(t) != nil:
		return t
	}
	return onHost{Around{Subset(t, h.Hosts[h.Local])}, h}
}

// ByHost returns the ranks of each host, that of the least rank first, and which of these has the rank, by what tells the
// hosts of all ranks apart.
func ByHost[H comparable](hostOf []H, rank int) (ranks [][]int, local int) {
	numbers := map[H]int{}
	for r, host := range hostOf {
		number, known := numbers[host]
		if !known {
			number = len(ranks)
			numbers[host], ranks = number, append(ranks, nil)
		}
		ranks[number] = append(ranks[number], r)
	}
	return ranks, numbers[hostOf[rank]]
}

type onHost struct {
	Around
	host *Host
}

func (o onHost) Host() *Host { return o.host }

// A Host is what one rank knows of the ranks of its host.
type Host struct {
	Hosts [][]int // the ranks of each host of the group, ascending, the host of the least rank first
	Local int     // which of these is this one

	// Crowded says, alike at all ranks of the host, that there are more ranks than cores: who waits lets others go on at once.
	Crowded bool

	// Separate says that the ranks are processes: a thread that sleeps holds up no other rank.
	Separate bool

	// Yield lets ranks of the host go on that share this rank's core. Who waits for them calls it again and again.
	Yield func()

	// Aborted returns an *[AbortError] after an abort, and lets messages go on meanwhile. Who waits for something else
	// than messages calls it now and then.
	Aborted func() error

	// Stages are what runs, one after the other, exchange packets by that lie elsewhere: none until the first run shares
	// one, see package collective, and a longer one where a later run needs it. What was made ready with an earlier one
	// goes on with that. Who closes the transport calls Close.
	Stages []*Window

	// Unshared says why the ranks have no memory together, although they run on one host.
	Unshared error
}

// Close gives the stages back, unless the group was aborted, or a wait given up: what is on a stage may then be read and
// written at any later time, see [Queue.Wait], and it stays mapped.
func (h *Host) Close(aborted bool) {
	for _, w := range h.Stages {
		if !aborted {
			w.Close()
		}
	}
	h.Stages = nil
}

// Alone returns a transport of one rank, for what t's rank computes of what lies in windows: as if it were the only one.
func Alone(t Transport) Transport { return alone{Around{t}} }

type alone struct{ Around }

func (alone) Rank() int      { return 0 }
func (alone) Size() int      { return 1 }
func (alone) Overlaps() bool { return false }

// Slice returns the i-th slice of n bytes, of so many: all as long as the first, but the last ones.
func Slice(n, count, i, unit int) (start, end int) {
	share := ((n+count-1)/count + unit - 1) / unit * unit
	start = min(n, i*share)
	return start, min(n, start+share)
}

// A Window is memory that all ranks of a host read and write where it lies.
type Window struct {
	Parts [][]byte // of each rank, of one length. A rank is the first to touch its own, which then lies near its core.
	ID    uint64   // the same at all ranks, and that of no other window

	rank  int
	flags [][]byte // of each rank
	epoch uint64
	unmap func()
}

// FlagBytes is how many bytes the flags of a rank take: lines of a cache, with the neighbours that are fetched along.
const FlagBytes = 256

// NewWindow returns a window of parts and flags, which are zero, by rank. Close calls unmap.
func NewWindow(id uint64, rank int, parts, flags [][]byte, unmap func()) *Window {
	return &Window{Parts: parts, ID: id, rank: rank, flags: flags, unmap: unmap}
}

// Fits reports whether the window may be of the ranks of t: there are as many, and this one is the same.
func (w *Window) Fits(t Transport) bool { return w.rank == t.Rank() && len(w.Parts) == t.Size() }

// Close gives the memory back, of this rank. Nobody uses its parts afterwards. Close is not called while a transfer has some
// of it, nor after an abort in which one had: see [Queue.Wait].
func (w *Window) Close() { w.unmap() }

// word returns a word of a rank's flags: 0 is how often it has come, and what it says lies in the next two by turns, as
// the next time may come before all have read this one. Word 3 counts its signs of life, word 4 who sleeps until it comes.
func (w *Window) word(rank, i int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&w.flags[rank][8*i]))
}

// How long a wait for memory spins, and how long it yields its core before it sleeps: where processes outnumber
// cores, it yields for as long as others spin. Who yields to others that wait, too, takes the time of who works.
const (
	spinMeeting  = 50 * time.Microsecond
	yieldMeeting = 2 * time.Millisecond
	napMeeting   = time.Millisecond
)

// Live gives a sign of life of this rank, which does what may take longer than the timeout of those that meet.
func (w *Window) Live() { w.word(w.rank, 3).Add(1) }

// Meet waits until all ranks have come: what each has written before, the others see. Every rank says something. Where
// they say different things, it returns which rank does, and else -1. The error is that of an abort, the cause of ctx, or
// that of overdue, unless nil, when a rank has not come, nor given a sign of life, for the timeout; 0 is no bound.
func (w *Window) Meet(
	ctx context.Context, h *Host, says uint64, timeout time.Duration, overdue func(rank int) error,
) (differing int, err error) {
	w.epoch++
	turn := 1 + int(w.epoch%2)
	w.word(w.rank, turn).Store(says)
	w.word(w.rank, 0).Store(w.epoch)
	if w.word(w.rank, 4).Load() > 0 {
		wake(w.word(w.rank, 0))
	}
	differing = -1
	for i := 1; i < len(w.Parts); i++ {
		r := (w.rank + i) % len(w.Parts)
		if w.word(r, 0).Load() < w.epoch {
			err := w.await(ctx, h, r, timeout)
			if err == errTimedOut {
				err = overdue(r)
				if told := h.Aborted(); err != nil && told != nil { // another rank knows why, and has ended the inquiry
					err = told
				}
			}
			if err != nil {
				return -1, err
			}
		}
		if w.word(r, turn).Load() != says {
			differing = r
		}
	}
	return differing, nil
}

var errTimedOut = fmt.Errorf("transport: a meeting has taken too long")

// await waits until a rank has come.
func (w *Window) await(ctx context.Context, h *Host, rank int, timeout time.Duration) error {
	came, lives := w.word(rank, 0), w.word(rank, 3)
	for n := 0; !h.Crowded && n < spinsAtOnce; n++ {
		if came.Load() >= w.epoch {
			return nil
		}
	}
	begun, lived, yields, looksEvery := time.Now(), lives.Load(), yieldMeeting, 64
	if h.Crowded && h.Separate {
		yields, looksEvery = spinMeeting, 8
	}
	for n := 1; came.Load() < w.epoch; n++ {
		waited := time.Duration(0)
		if n%looksEvery == 0 {
			if last := lives.Load(); last != lived {
				begun, lived = time.Now(), last
			}
			waited = time.Since(begun)
			switch err := h.Aborted(); {
			case err != nil:
				return err
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case timeout > 0 && waited > timeout:
				return errTimedOut
			}
		}
		switch {
		case waited > yields:
			w.rest(h, rank, waited)
			n = looksEvery - 1 // to look again
		case h.Crowded || waited > spinMeeting:
			h.Yield()
		}
	}
	return nil
}

// rest sleeps until a rank has come, or for a moment.
func (w *Window) rest(h *Host, rank int, waited time.Duration) {
	if !h.Separate {
		nap(waited)
		return
	}
	came, sleepers := w.word(rank, 0), w.word(rank, 4)
	sleepers.Add(1)
	if seen := came.Load(); seen < w.epoch {
		sleep(came, seen, waited)
	}
	sleepers.Add(^uint64(0))
}

// nap takes a part of the time that was waited, so that it ends not much later than the wait.
func nap(waited time.Duration) { time.Sleep(min(napMeeting, waited/6)) }

const spinsAtOnce = 2000 // which take some µs, without a look at the clock
