// Package bench compares the speed of runs in one process with that of other
// libraries, in the same process and in turns, and counts what comes out wrong.
//
// docs/metrics.md says what its figures mean, and what the peers do and do not do.
package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"volley"
	"volley/algo"
	"volley/verify"
)

// A Case is a kind of problem and the peer that does the same work.
type Case struct {
	Name  string
	Doc   string // in one line
	Field string // its name
	Ks    []int  // numbers of processors by default
	Size  int64  // bytes of a packet by default
	Unit  int64  // that sizes are multiples of, in bytes
	Peer  string // its name

	mostK  int             // that peer and field take
	powers bool            // K is a power of two
	held   func(k int) int // packets in memory, of ours and the peer's together
	plain  bool            // no encode: it has no choice of algorithm, and the peer is memcpy
	build  func(k int, size int64) (*workload, error)
}

var cases = []Case{denseCase, cauchyCase, parityCase, leopardCase, dftCase, allgatherCase}

// Cases returns all cases, in the order in which to measure them.
func Cases() []Case { return slices.Clone(cases) }

// Lookup returns the case of that name, or an error that lists the names.
func Lookup(name string) (Case, error) {
	var names []string
	for _, c := range cases {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	return Case{}, fmt.Errorf("bench: case %q: want one of %s", name, strings.Join(names, ", "))
}

// mostMemory is as much as the packets of a case may take, in bytes.
const mostMemory = 8 << 30

// Check returns an error that says why K processors with packets of size bytes cannot
// be measured, and nil where they can.
func (c Case) Check(k int, size int64) error {
	held := int64(c.held(max(1, min(k, c.mostK))))
	switch {
	case k < 2 || k > c.mostK:
		return fmt.Errorf("bench: %s with K = %d: want 2 to %d", c.Name, k, c.mostK)
	case c.powers && k&(k-1) != 0:
		return fmt.Errorf("bench: %s with K = %d: want a power of 2", c.Name, k)
	case size < c.Unit || size%c.Unit != 0:
		return fmt.Errorf("bench: %s with packets of %d bytes: want a multiple of %d", c.Name, size, c.Unit)
	case size > mostMemory/held:
		return fmt.Errorf("bench: %s with K = %d and packets of %d bytes: it would hold %d of them: want %d MiB at most together",
			c.Name, k, size, held, mostMemory>>20)
	}
	return nil
}

// MostTime ends the iterations of a row before there are as many as were asked for, as a peer without assembly takes
// seconds for each. There are LeastIterations at least.
var MostTime = 10 * time.Second

// LeastIterations is how many iterations MostTime leaves.
const LeastIterations = 3

// Options say how to measure.
type Options struct {
	Algorithms []string            // of encodes; nil is [algo.Auto]
	Iterations int                 // that count, 1 or more; one more goes before them; see [MostTime]
	Progress   func(completed int) // unless nil, is called after each iteration
	Profiles   string              // a directory for profiles of the CPU, unless empty; see [Case.Measure]
}

// A Result is what was measured of one algorithm. Times are medians, in seconds.
type Result struct {
	Case        string  `json:"case"`
	Field       string  `json:"field"`
	Size        int64   `json:"size"` // bytes of a packet
	K           int     `json:"K"`
	Ports       int     `json:"p"`
	Algorithm   string  `json:"algorithm"`
	C1          int     `json:"C1"`                  // rounds
	C2          float64 `json:"C2"`                  // packets
	C3          int     `json:"C3"`                  // multiply-adds per symbol
	Iterations  int     `json:"iterations"`          // that count
	Seconds     float64 `json:"seconds"`             // of a run without the final check
	Check       float64 `json:"check_seconds"`       // seconds of the final check, in one run; 0 where there is none
	Floor       float64 `json:"check_floor_seconds"` // see docs/metrics.md; 0 where there is none
	Compile     float64 `json:"compile_share"`       // share of the first run in which programs were made ready
	Wrong       int     `json:"wrong"`               // coded packets that are not what they should be
	Peer        string  `json:"peer"`
	PeerSeconds float64 `json:"peer_seconds"`
	CopySeconds float64 `json:"memcpy_seconds"` // to copy all packets once; 0 where that is the peer
	Machine
}

// AlgorithmBandwidth is K packets over the time of a run, in bytes per second.
func (r Result) AlgorithmBandwidth() float64 { return float64(r.K) * float64(r.Size) / r.Seconds }

// BusBandwidth is C2 packets over the time of a run, in bytes per second: what each port of
// a processor would have to send if the run were nothing but messages.
func (r Result) BusBandwidth() float64 { return r.AlgorithmBandwidth() * r.C2 / float64(r.K) }

// Ratio is the time of a run over that of the peer: below 1 the peer is slower.
func (r Result) Ratio() float64 { return r.Seconds / r.PeerSeconds }

// A workload is a case for some K and size, with its packets.
type workload struct {
	inputs, outputs [][]byte // packets; outputs is in the order in which runs write them

	// start returns a run by the algorithm that writes all outputs, which checks its
	// result at the end if it is to. The report of the first one has CompileSeconds.
	start func(ctx context.Context, algorithm string) (run, error)
	peer  func() error
	wrong func() int // how many outputs are not right, after peer has run
}

type run func(ctx context.Context, check bool) (*volley.Report, error)

// Measure measures K processors with packets of size bytes: a result for each algorithm
// that takes the matrix. Each iteration runs every algorithm, the peer and memcpy once,
// one after the other, so that what else the machine does meets all of them. Where no
// algorithm takes the matrix the error is that of the last. A profile is of runs without
// the final check, for a few seconds, and its name is the case, K and the algorithm.
func (c Case) Measure(ctx context.Context, k int, size int64, o Options) ([]Result, error) {
	if err := c.Check(k, size); err != nil {
		return nil, err
	}
	if o.Iterations < 1 {
		return nil, fmt.Errorf("bench: %d iterations: want 1 or more", o.Iterations)
	}
	if len(o.Algorithms) == 0 || c.plain {
		o.Algorithms = []string{algo.Auto}
	}
	machine := CurrentMachine()
	if err := machine.checkSet(); err != nil {
		return nil, err
	}
	w, err := c.build(k, size)
	if err != nil {
		return nil, err
	}
	var runs []run
	for _, name := range o.Algorithms {
		execute, unsuited := w.start(ctx, name)
		switch {
		case errors.Is(unsuited, algo.ErrStructure):
			err = unsuited
		case unsuited != nil:
			return nil, unsuited
		default:
			runs = append(runs, execute)
		}
	}
	if len(runs) == 0 {
		return nil, err
	}
	floor := func() {}
	if !c.plain {
		if floor, err = checkFloor(c.Field, k, size); err != nil {
			return nil, err
		}
	}
	results := make([]Result, len(runs))
	ours := make([][]float64, len(runs))
	var peers, copies, floors []float64
	runtime.GC() // of what building has left
	began := time.Now()
	for i := range o.Iterations + 1 {
		if i > LeastIterations && time.Since(began) > MostTime {
			break
		}
		for a, execute := range runs {
			var r *volley.Report
			seconds, err := timed(ctx, func() (err error) { r, err = execute(ctx, false); return err })
			if err != nil {
				return nil, err
			}
			if i == 0 {
				results[a] = c.result(k, size, r)
				results[a].Machine = machine
			}
			ours[a] = append(ours[a], seconds)
		}
		theirs, err := timed(ctx, w.peer)
		if err != nil {
			return nil, err
		}
		peers = append(peers, theirs)
		if !c.plain {
			copies = append(copies, secondsOf(func() { copyAll(w.outputs, w.inputs) }))
			floors = append(floors, max(secondsOf(floor), secondsOf(func() { readAll(w.inputs, w.outputs) })))
		}
		if o.Progress != nil {
			o.Progress(i)
		}
	}
	for a, execute := range runs {
		r := &results[a]
		var report *volley.Report
		var checked error
		for range 2 { // the first one makes the programs of the check
			for _, p := range w.outputs { // what a run leaves out is wrong then
				clear(p)
			}
			report, checked = execute(ctx, true)
		}
		failed := errors.As(checked, new(*verify.CheckError))
		if checked != nil && !failed {
			return nil, checked
		}
		if r.Wrong = w.wrong(); failed {
			r.Wrong = max(1, r.Wrong)
		} else {
			r.Check = report.CheckSeconds
		}
		r.Iterations, r.Seconds, r.PeerSeconds = len(peers)-1, Median(ours[a][1:]), Median(peers[1:])
		if !c.plain {
			r.CopySeconds, r.Floor = Median(copies[1:]), Median(floors[1:])
		}
		if o.Profiles != "" {
			name := filepath.Join(o.Profiles, fmt.Sprintf("%s-%d-%s.pprof", c.Name, k, r.Algorithm))
			if err := profile(name, func() error { _, err := execute(ctx, false); return err }); err != nil {
				return nil, err
			}
		}
	}
	return results, nil
}

// profileTime is how long runs are profiled: for some hundred samples.
const profileTime = 3 * time.Second

// profile writes a profile of the CPU while run runs, again and again.
func profile(name string, run func() error) (err error) {
	file, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("bench: profile: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := pprof.StartCPUProfile(file); err != nil {
		return fmt.Errorf("bench: profile: %w", err)
	}
	defer pprof.StopCPUProfile()
	for start := time.Now(); time.Since(start) < profileTime; {
		if err := run(); err != nil {
			return err
		}
	}
	return nil
}

// result is what the report of a first run tells.
func (c Case) result(k int, size int64, r *volley.Report) Result {
	return Result{
		Case: c.Name, Field: c.Field, Size: size, K: k, Ports: r.Ports, Peer: c.Peer,
		Algorithm: r.Algorithm, C1: r.C1, C2: r.C2Packets, C3: r.C3,
		Compile: r.CompileSeconds / r.Seconds,
	}
}

// timed returns how many seconds f takes.
func timed(ctx context.Context, f func() error) (seconds float64, err error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	seconds = secondsOf(func() { err = f() })
	return seconds, err
}

func secondsOf(f func()) float64 {
	start := time.Now()
	f()
	return max(time.Since(start), 1).Seconds()
}

// Median returns the middle one, or the mean of the two in the middle.
func Median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	n := len(list)
	return (list[(n-1)/2] + list[n/2]) / 2
}
