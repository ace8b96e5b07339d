package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"volley"
	"volley/bench"
	"volley/internal/report"
	"volley/matrix"
	"volley/transport"
)

// ranks are those of the job. What is not of the transport is called inside Exclusive.
type ranks interface {
	transport.Transport
	messages
	Exclusive(func())
	barrier()
	assemble()            // returns when all ranks have called it, and sleeps meanwhile
	greatest(v []float64) // sets every value to the greatest of all ranks
	sum(v []float64)      // to the sum
	used() float64        // seconds of CPU, of this process so far
}

// A job is what a rank measures.
type job struct {
	*settings
	ranks
	label    Cell // what all cells have
	matrices []matrix.Matrix
	last     map[string]expectation
	soFar    float64       // packets that the network has dropped
	pause    time.Duration // before each run
}

// An expectation is what a way took on packets of the last size.
type expectation struct {
	size    int
	seconds float64
}

// measureAll measures everything. It returns an error that wraps errWrong, at rank 0,
// where results were wrong.
func (s *settings) measureAll(ctx context.Context, r ranks, label Cell) error {
	j := &job{settings: s, ranks: r, label: label, last: map[string]expectation{}}
	j.label.Date = time.Now().UTC().Format(time.DateOnly)
	j.label.Machine = bench.CurrentMachine().String()
	j.label.K, j.label.Network = r.Size(), s.network
	for _, p := range s.problems {
		a, err := p.spec.Build(p.field, r.Size(), r.Size())
		if err != nil {
			return err
		}
		j.matrices = append(j.matrices, a)
		for _, n := range s.sizes {
			if n%(r.Size()*p.field.SymbolBytes()) != 0 {
				return fmt.Errorf("%w: --sizes: %d bytes are no %d slices of whole symbols of %s, %d bytes each",
					errUsage, n, r.Size(), p.field.Name(), p.field.SymbolBytes())
			}
		}
	}
	if r.Rank() == 0 {
		fmt.Printf("%d ranks, %s\n", r.Size(), label.MPI) // run waits for it
	}
	wrong := 0
	for _, size := range s.sizes {
		for _, pause := range s.pauses {
			j.pause = pause
			cells, err := j.measure(ctx, size)
			if err != nil {
				return err
			}
			for _, c := range cells {
				for _, w := range c.Ways {
					wrong += w.Wrong
				}
			}
			if r.Rank() == 0 {
				if err := j.write(cells); err != nil {
					return err
				}
			}
		}
	}
	if wrong > 0 && r.Rank() == 0 {
		return fmt.Errorf("%w: %d of them", errWrong, wrong)
	}
	return nil
}

// A contestant is a way to encode, ready to run.
type contestant struct {
	Way
	cells  []int // that it is in
	work   *peerWork
	want   []byte // the result; nil: there is none
	encode func() (sample, error)
	close  func() // unless nil, gives back what it holds

	samples []sample
	dropped float64
}

// A sample is what was measured of a run, in seconds: of a way, and of parts of it.
type sample struct{ seconds, cpu, first, check float64 }

// measure measures everything on packets of one size. There is a cell for each matrix.
func (j *job) measure(ctx context.Context, size int) ([]Cell, error) {
	debug.FreeOSMemory() // what the last size has left
	cells, list, err := j.prepare(ctx, size)
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		last, known := j.last[fmt.Sprint(c.cells, c.Name)]
		expected := last.seconds * float64(size) / float64(max(1, last.size))
		if known && expected > 3*j.most.Seconds() {
			c.LeftOut = "would take about " + span(expected)
		}
	}
	start := time.Now()
	// What runs before leaves its data in the caches. The order is the same at all ranks, and another one in every cell:
	// with few runs it favours some ways.
	order := rand.New(rand.NewPCG(uint64(size), uint64(j.pause)))
	for run := range j.runs + 1 {
		for _, i := range order.Perm(len(list)) {
			c := list[i]
			if c.LeftOut != "" || c.Runs > 0 {
				continue
			}
			s, dropped, err := j.run(c)
			if err != nil {
				return nil, err
			}
			// The first run makes connections and plans.
			long := s.seconds > j.most.Seconds()
			if run > 0 || long {
				c.samples, c.dropped = append(c.samples, s), c.dropped+dropped
			}
			if run == 0 && long {
				c.Runs = 1
			}
		}
		elapsed := []float64{time.Since(start).Seconds()}
		j.Exclusive(func() { j.greatest(elapsed) })
		if run >= 3 && elapsed[0] > j.enough.Seconds() {
			break
		}
	}
	j.Exclusive(func() { closeWindows(list) })
	for _, c := range list {
		if c.close != nil {
			c.close()
		}
	}
	for _, c := range list {
		if c.LeftOut == "" {
			c.settle()
			j.last[fmt.Sprint(c.cells, c.Name)] = expectation{size, c.Seconds}
		}
		for _, i := range c.cells {
			cells[i].Ways = append(cells[i].Ways, c.Way)
		}
	}
	return cells, nil
}

// closeWindows closes those of the ways. All ranks call it.
func closeWindows(list []*contestant) {
	for _, c := range list {
		if w := c.work; w.shared != nil {
			w.shared.close()
			w.shared = nil
		}
	}
}

// prepare returns the cells and all ways to run for them, in the order in which they run.
func (j *job) prepare(ctx context.Context, size int) (cells []Cell, list []*contestant, err error) {
	shared := &buffers{in: make([]byte, size), out: make([]byte, size), y: make([]byte, size)}
	var all []int
	for i, a := range j.matrices {
		cell := j.label
		cell.Matrix, cell.Field, cell.Size = j.problems[i].String(), a.Field().Name(), size
		cell.Bound, cell.Pause = j.bound(cell.K, size), span(j.pause.Seconds())
		all, cells = append(all, i), append(cells, cell)

		x := make([]byte, size)
		packet(a.Field(), j.Rank(), x)
		w := newPeerWork(j, a, j.Rank(), transport.Cores(j.ranks), x, shared)
		ways, err := j.ours(ctx, a, w)
		if err != nil {
			return nil, nil, err
		}
		for _, name := range j.names {
			if slices.Contains(peers, name) || slices.Contains(later, name) || name == codingAlone {
				ways = append(ways, j.theirs(name, w))
			}
		}
		ways = append(ways, j.throughWindow(a, w)...)
		want := directSum(a, j.Rank(), size)
		for _, c := range ways {
			c.cells = []int{i}
			if c.Name != codingAlone {
				c.want = want
			}
		}
		list = append(list, ways...)
	}
	for _, name := range j.names { // to them all matrices are the same
		if slices.Contains(uncoded, name) || name == raw {
			c := j.theirs(name, list[0].work)
			c.cells, c.want = all, c.work.x
			list = append(list, c)
		}
	}
	return cells, list, nil
}

// run runs a way once and returns what the slowest rank took, and at rank 0 how many
// packets the network has dropped meanwhile.
func (j *job) run(c *contestant) (s sample, dropped float64, err error) {
	c.work.prepare(c.Name)
	time.Sleep(j.pause)
	if s, err = c.encode(); err != nil {
		return s, 0, fmt.Errorf("%s: %w", c.Name, err)
	}
	// A check ends when all have come to it, so the rank that came last tells what it takes.
	slowest, sums := []float64{s.seconds, s.first, -s.check}, []float64{0, s.cpu}
	if c.want != nil && !bytes.Equal(c.work.y, c.want) {
		sums[0] = 1
	}
	before := j.soFar
	if j.soFar, err = j.dropped(); err != nil {
		return s, 0, err
	}
	j.Exclusive(func() {
		if j.pause > 0 { // ranks that wait awake would take the cores of those that still work
			j.assemble()
		}
		j.greatest(slowest)
		j.sum(sums)
	})
	c.Wrong += int(sums[0])
	return sample{slowest[0], sums[1], slowest[1], -slowest[2]}, j.soFar - before, nil
}

// settle works out the figures of the way from those of its runs.
func (c *contestant) settle() {
	median := func(of func(sample) float64) float64 {
		var list []float64
		for _, s := range c.samples {
			list = append(list, of(s))
		}
		slices.Sort(list)
		c.Least, c.Most = list[0], list[len(list)-1]
		return bench.Median(list)
	}
	c.First = median(func(s sample) float64 { return s.first })
	c.Check = median(func(s sample) float64 { return s.check })
	c.CPU = median(func(s sample) float64 { return s.cpu })
	c.Seconds = median(func(s sample) float64 { return s.seconds }) // last: it sets Least and Most
	c.Runs = len(c.samples)
	c.Dropped = c.dropped / float64(c.Runs)
}

// encoder returns an encoder that chooses for the links, or has the algorithm.
func (j *job) encoder(ctx context.Context, a matrix.Matrix, algorithm string, check bool) (*volley.Encoder, error) {
	return volley.NewEncoder(ctx, a, volley.WithAlgorithm(algorithm), volley.WithCheck(check),
		volley.WithTimeout(5*time.Minute), volley.WithNetwork(j.links))
}

// planOf names the plan of a run, or of an estimate.
func planOf(r *volley.Report) string { return strings.TrimSpace(r.Algorithm + " " + r.Parameters) }

// timed runs what is ready once all ranks have come.
func (j *job) timed(b *volley.Bound) (sample, error) {
	j.Exclusive(j.barrier)
	start, used := time.Now(), j.used()
	err := b.Run()
	return sample{seconds: time.Since(start).Seconds(), cpu: j.used() - used}, err
}

// ours returns Volley, made ready once, by each algorithm without the check, and by the first with it.
func (j *job) ours(ctx context.Context, a matrix.Matrix, w *peerWork) ([]*contestant, error) {
	var all []*contestant
	unit := a.Field().SymbolBytes()
	for i, name := range j.plans {
		e, err := j.encoder(ctx, a, name, false)
		if err != nil {
			return nil, err
		}
		r, err := e.Estimate(ctx, nil, int64(len(w.x)/unit))
		if err != nil {
			return nil, err
		}
		way := Way{
			Name: bare + "-" + name, Plan: planOf(r),
			C1: r.C1, C2: r.C2Packets, Model: r.Seconds,
		}
		if i == 0 {
			way.Name = bare
		}
		over := []transport.Transport{j.ranks}
		if j.tcp != nil {
			over = append(over, j.tcp)
		}
		for i, t := range over {
			if i > 0 {
				way.Name += "-tcp"
			}
			b, err := e.Bind(ctx, t, []volley.Packet{{Data: w.x, Result: &w.y}})
			if err != nil {
				return nil, err
			}
			way.Plan = planOf(b.Report())
			all = append(all, &contestant{Way: way, work: w, close: b.Close, encode: func() (sample, error) { return j.timed(b) }})
		}
		if i == 0 {
			c, err := j.inWindow(ctx, e, w)
			if err != nil {
				return nil, err
			}
			if c != nil {
				all = append(all, c)
			}
		}
	}
	e, err := j.encoder(ctx, a, j.plans[0], true)
	if err != nil {
		return nil, err
	}
	b, err := e.Bind(ctx, j.ranks, []volley.Packet{{Data: w.x, Result: &w.y}})
	if err != nil {
		return nil, err
	}
	// The agreement is that of an encoder of its own each time, on a short packet: its messages do not depend on the
	// length.
	short := make([]byte, unit*j.Size())
	copy(short, w.x)
	scratch := make([]byte, len(short))
	return append(all, &contestant{Way: Way{Name: asDefault, Plan: all[0].Plan}, work: w, close: b.Close, encode: func() (sample, error) {
		s, err := j.timed(b)
		if err != nil {
			return s, err
		}
		s.check = b.Report().CheckSeconds
		fresh, err := j.encoder(ctx, a, j.plans[0], false)
		if err != nil {
			return s, err
		}
		time.Sleep(j.pause)
		j.Exclusive(j.barrier)
		r, err := fresh.Run(ctx, j.ranks, volley.Packet{Data: short, Result: &scratch})
		if err == nil {
			s.first = r.AgreeSeconds
		}
		return s, err
	}}), nil
}

// inWindow returns Volley made ready once, with packets and results in a window; nil where the ranks have no host in common.
func (j *job) inWindow(ctx context.Context, e *volley.Encoder, w *peerWork) (*contestant, error) {
	if transport.HostOf(j.ranks) == nil {
		return nil, nil
	}
	size := len(w.x)
	window, err := volley.Share(ctx, j.ranks, 2*size, time.Minute)
	if err != nil {
		return nil, err
	}
	part := window.Parts[j.Rank()]
	x, y := part[:size:size], part[size:][:size:size]
	copy(x, w.x)
	clear(y) // its first touch
	b, err := e.Bind(ctx, j.ranks, []volley.Packet{{Data: x, Result: &y}}, window)
	if err != nil {
		return nil, err
	}
	c := &contestant{Way: Way{Name: boundWindow, Plan: planOf(b.Report())}, work: w}
	c.encode = func() (s sample, err error) {
		clear(y)
		s, err = j.timed(b)
		copy(w.y, y)
		return s, err
	}
	c.close = func() {
		b.Close()
		window.Close()
	}
	return c, nil
}

// throughWindow returns the ways through a window that the ranks share. They are left out where it cannot be.
func (j *job) throughWindow(a matrix.Matrix, w *peerWork) (ways []*contestant) {
	var why error
	for _, name := range j.names {
		if !slices.Contains(windows, name) {
			continue
		}
		if w.shared == nil && why == nil {
			var coefficients []byte
			if coefficients, why = products(a); why == nil {
				j.Exclusive(func() { w.shared, why = j.window(coefficients, w.x) })
			}
		}
		c := j.theirs(name, w)
		if why != nil {
			c.LeftOut = why.Error()
		} else {
			c.Kernel = w.shared.kernel()
		}
		ways = append(ways, c)
	}
	return ways
}

// theirs returns a peer.
func (j *job) theirs(name string, w *peerWork) *contestant {
	return &contestant{Way: Way{Name: name}, work: w, encode: func() (s sample, err error) {
		j.Exclusive(func() {
			j.barrier()
			start, used := time.Now(), j.used()
			err = w.encode(name)
			s.seconds, s.cpu = time.Since(start).Seconds(), j.used()-used
			w.finish(name)
		})
		return s, err
	}}
}

// dropped returns what the command says; rank 0 asks, the others have 0.
func (j *job) dropped() (float64, error) {
	if len(j.drops) == 0 || j.Rank() != 0 {
		return 0, nil
	}
	out, err := exec.Command(j.drops[0], j.drops[1:]...).Output()
	if err != nil {
		return 0, fmt.Errorf("--drops: %s: %w", j.drops, err)
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	if err != nil {
		return 0, fmt.Errorf("--drops: %s: %w", j.drops, err)
	}
	return n, nil
}

// write prints the cells and adds them to the file.
func (j *job) write(cells []Cell) error {
	for _, c := range cells {
		fmt.Printf("%s, %s, %s over %s", c.Network, bench.Size(int64(c.Size)), c.Matrix, c.Field)
		if c.Pause != "" {
			fmt.Printf(", after a pause of %s", c.Pause)
		}
		if c.Bound > 0 {
			fmt.Printf(", bound %s", span(c.Bound))
		}
		fmt.Println()
		if err := report.Text(os.Stdout, columns(c), c.Ways); err != nil {
			return err
		}
		fmt.Println()
	}
	if j.output == "" {
		return nil
	}
	f, err := os.OpenFile(j.output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(writeCells(f, cells), f.Close())
}

// columns are those of what is printed of a cell.
func columns(c Cell) []report.Column[Way] {
	type column = report.Column[Way]
	number := func(name, unit string, text func(float64) string, value func(Way) float64) column {
		return column{Name: name, Unit: unit, Value: func(w Way) any {
			if x := value(w); x != 0 {
				return text(x)
			}
			return nil
		}}
	}
	over := func(unit string, others ...string) column {
		return number("ratio", unit, digits, func(w Way) float64 { return c.ratio(w.Name, others...) })
	}
	return []column{
		{Name: "way", Value: func(w Way) any { return strings.TrimSpace(w.Name + " " + w.Plan + w.Kernel) }},
		number("time", "median", span, func(w Way) float64 { return w.Seconds }),
		number("least", "", span, func(w Way) float64 { return w.Least }),
		number("runs", "", digits, func(w Way) float64 { return float64(w.Runs) }),
		over("to best peer", peers...),
		over("to best window", windows...),
		over("to uncoded", uncoded...),
		over("to raw", raw),
		over("to exchange", bare+"-exchange"),
		number("model", "", span, func(w Way) float64 { return w.Model }),
		number("agreement", "", span, func(w Way) float64 { return w.First }),
		number("check", "", span, func(w Way) float64 { return w.Check }),
		number("CPU", "all ranks", span, func(w Way) float64 { return w.CPU }),
		number("dropped", "packets", digits, func(w Way) float64 { return w.Dropped }),
		{Name: "#wrong", Value: func(w Way) any { return w.Wrong }},
		{Name: "left out", Value: func(w Way) any { return w.LeftOut }},
	}
}
