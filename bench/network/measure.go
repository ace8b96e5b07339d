//go:build mpi

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"volley"
	"volley/bench"
	"volley/field"
	"volley/matrix"
	"volley/report"
	"volley/sim"
	"volley/transport/mpi"
	"volley/tune"
)

// A job is what all ranks measure.
type job struct {
	sizes, ports      []int
	algorithms, peers []string
	matrix            matrix.Matrix
	label             Row // what all rows have
	runs              int
	most, tuning      time.Duration
	output            string // of JSON lines, at rank 0
	drops             []string

	e       *mpi.Endpoint
	network sim.Network
}

func parse(args []string) (*job, error) {
	j := &job{}
	f := flag.NewFlagSet("network measure", flag.ContinueOnError)
	sizes := f.String("sizes", "64KiB,1MiB", "sizes of packets")
	ports := f.String("ports", "1", "values of p: messages that volley sends, and receives, at a time")
	algorithms := f.String("algorithms", "auto,universal", "of volley; one that comes to the same plan as another before it is left out")
	names := f.String("peers", strings.Join(peerNames, ","), "what to compare with; may be empty")
	f.StringVar(&j.label.Matrix, "matrix", "random:1", "family, as volley encode has it")
	order := f.String("order", "natural", "of a dft: natural or reversed")
	f.StringVar(&j.label.Field, "field", "2^8", "finite field, as volley fields lists them")
	f.IntVar(&j.runs, "runs", 5, "runs that count; one more goes before them")
	f.DurationVar(&j.most, "most", time.Minute, "leave out what would take longer, with all runs on packets of one size")
	f.DurationVar(&j.tuning, "fit", 4*time.Second, "about how long to measure the network")
	f.StringVar(&j.output, "json", "", "file to which rank 0 adds a JSON object on a line for each row")
	f.StringVar(&j.label.Link, "link", "", "rate and delay of the links, to stand in every row")
	drops := f.String("drops", "", "command that prints how many packets the network has dropped so far")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	j.drops = strings.Fields(*drops)
	for _, s := range list(*sizes) {
		n, err := humanize.ParseBytes(s)
		if err != nil || n < 1 || n > math.MaxInt32 {
			return nil, fmt.Errorf("--sizes %q: want sizes such as 64KiB, below 2 GiB", s)
		}
		j.sizes = append(j.sizes, int(n))
	}
	for _, s := range list(*ports) {
		p, err := strconv.Atoi(s)
		if err != nil || p < 1 {
			return nil, fmt.Errorf("--ports %q: want numbers from 1", s)
		}
		j.ports = append(j.ports, p)
	}
	j.algorithms, j.peers = list(*algorithms), list(*names)
	for _, name := range j.peers {
		if !slices.Contains(peerNames, name) {
			return nil, fmt.Errorf("--peers %q: want some of %s", name, strings.Join(peerNames, ", "))
		}
	}
	if f.NArg() > 0 || j.runs < 1 || j.tuning <= 0 {
		return nil, fmt.Errorf("arguments %q, %d runs, %v: want none, 1 or more, more than 0", f.Args(), j.runs, j.tuning)
	}
	j.label.Date = time.Now().UTC().Format(time.DateOnly)
	j.label.Machine = bench.This().String()
	return j, j.build(*order)
}

// build sets the matrix, once K is known.
func (j *job) build(order string) error {
	var err error
	if j.e, err = mpi.Init(); err != nil {
		return err
	}
	f, err := field.Parse(j.label.Field)
	if err != nil {
		return err
	}
	spec, err := matrix.ParseSpec(j.label.Matrix)
	if err != nil {
		return err
	}
	if order != "natural" {
		spec.Order = order
		j.label.Matrix += ", " + order
	}
	j.label.K, j.label.Field = j.e.Size(), f.Name()
	for _, n := range j.sizes {
		if n%f.SymbolBytes() != 0 {
			return fmt.Errorf("--sizes: %d bytes are no whole number of symbols of %s, %d bytes each", n, f.Name(), f.SymbolBytes())
		}
	}
	j.matrix, err = spec.Build(f, j.label.K, j.label.K)
	return err
}

func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

// measure is what every rank does.
func measure(args []string) error {
	j, err := parse(args)
	if err != nil {
		return err
	}
	ctx := context.Background()
	j.e.Exclusive(func() { j.label.MPI = library() })
	if j.e.Rank() == 0 {
		fmt.Printf("%d ranks, %s\n", j.e.Size(), j.label.MPI) // run waits for it
	}
	if err := j.tune(ctx); err != nil {
		return err
	}
	wrong := 0
	for _, size := range j.sizes {
		rows, err := j.measure(ctx, size)
		if err != nil {
			return err
		}
		for _, r := range rows {
			wrong += r.Wrong
		}
		if j.e.Rank() == 0 {
			if err := j.write(rows); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(j.e.Close(), mpi.Finalize()); err != nil {
		return err
	}
	if wrong > 0 && j.e.Rank() == 0 {
		return fmt.Errorf("%w: %d of them", errWrong, wrong)
	}
	return nil
}

// tune measures the network as all ranks send at once.
func (j *job) tune(ctx context.Context) error {
	r, err := tune.Measure(ctx, j.e, tune.Place{Transport: "mpi"}, nil, j.tuning)
	if err != nil {
		return err
	}
	j.network = r.Network
	if j.e.Rank() == 0 {
		fmt.Printf("%v: the fit is off by %.1f %%\n", r.Network, 100*r.Residual())
	}
	return nil
}

// beta and tau are those of rounds with so many messages at a time, which share the link.
func (j *job) beta(ports int) time.Duration {
	return j.network.Latency + time.Duration(ports)*j.network.Overhead
}
func (j *job) tau(ports int) sim.PerByte { return sim.PerByte(ports) * j.network.Gap(ports) }

// A contestant is one way to encode, ready to run.
type contestant struct {
	Row
	encode  func() (seconds, agreement float64, err error) // behind a barrier; the time is without that
	seconds []float64                                      // of the slowest rank, each run
	agreed  []float64
	dropped []float64
}

// measure measures everything on packets of one size.
func (j *job) measure(ctx context.Context, size int) ([]Row, error) {
	rank := j.e.Rank()
	x, y := make([]byte, size), make([]byte, size)
	packet(j.matrix.Field(), rank, x)
	want := directSum(j.matrix, rank, size)
	list, err := j.ours(ctx, x, y)
	if err != nil {
		return nil, err
	}
	list = append(list, j.theirs(x, y)...)
	for _, c := range list {
		c.predict()
		if expected := time.Duration(c.Predicted * float64(j.runs+1) * float64(time.Second)); expected > j.most {
			c.LeftOut = fmt.Sprintf("would take %s s or more", digits(c.Predicted))
		}
	}
	for run := range j.runs + 1 {
		for _, c := range list {
			if c.LeftOut != "" {
				continue
			}
			clear(y)
			before, err := j.dropped()
			if err != nil {
				return nil, err
			}
			seconds, agreement, err := c.encode()
			if err != nil {
				return nil, err
			}
			slowest, wrong := []float64{seconds, agreement}, []float64{0}
			if !bytes.Equal(y, want) {
				wrong[0] = 1
			}
			j.e.Exclusive(func() { assemble(); greatest(slowest); sum(wrong) })
			after, err := j.dropped()
			if err != nil {
				return nil, err
			}
			c.Wrong += int(wrong[0])
			if run == 0 { // connections and plans are made
				if slowest[0]*float64(j.runs) > 2*j.most.Seconds() {
					c.LeftOut = fmt.Sprintf("took %s s once", digits(slowest[0]))
				}
				continue
			}
			c.seconds, c.agreed = append(c.seconds, slowest[0]), append(c.agreed, slowest[1])
			c.dropped = append(c.dropped, after-before)
		}
	}
	rows := make([]Row, len(list))
	for i, c := range list {
		if c.LeftOut == "" {
			c.Agreement = bench.Median(c.agreed)
			c.Seconds, c.Least, c.Most, c.Runs = bench.Median(c.seconds), slices.Min(c.seconds), slices.Max(c.seconds), len(c.seconds)
			if len(j.drops) > 0 {
				each := 0.0
				for _, n := range c.dropped {
					each += n / float64(len(c.dropped))
				}
				c.Dropped = &each
			}
		}
		rows[i] = c.Row
	}
	compare(rows)
	return rows, nil
}

// row returns what all rows have, with the model for p ports.
func (j *job) row(size, ports int) Row {
	r := j.label
	r.Size = size
	r.Beta, r.Tau = j.beta(ports).Seconds(), float64(j.tau(ports))
	return r
}

// ours returns volley by each algorithm and on each number of ports.
func (j *job) ours(ctx context.Context, x, y []byte) ([]*contestant, error) {
	var all []*contestant
	f := j.matrix.Field()
	for _, p := range j.ports {
		for _, name := range j.algorithms {
			e, err := volley.NewEncoder(j.matrix, volley.WithAlgorithm(name), volley.WithPorts(p), volley.WithCheck(false),
				volley.WithBeta(j.beta(p)), volley.WithTau(j.tau(p)), volley.WithTimeout(5*time.Minute))
			if err != nil {
				return nil, err
			}
			chosen, err := e.Plan(int64(len(x) / f.SymbolBytes()))
			if err != nil {
				return nil, err
			}
			info, cost := chosen.Info(), sim.Count(chosen)
			row := j.row(len(x), p)
			row.Who, row.Plan, row.Ports = ours, strings.TrimSpace(info.Algorithm+" "+info.Parameters), p
			row.C1, row.C2 = cost.C1, cost.PacketC2()
			if slices.ContainsFunc(all, func(c *contestant) bool { return c.Plan == row.Plan && c.Ports == p }) {
				continue
			}
			packets := []volley.Packet{{Data: x, Result: &y}}
			all = append(all, &contestant{Row: row, encode: func() (seconds, agreement float64, err error) {
				j.e.Exclusive(barrier)
				start := time.Now()
				r, err := e.Run(ctx, j.e, packets...)
				if err != nil {
					return 0, 0, err
				}
				return time.Since(start).Seconds() - r.AgreeSeconds, r.AgreeSeconds, nil
			}})
		}
	}
	return all, nil
}

// theirs returns the peers.
func (j *job) theirs(x, y []byte) []*contestant {
	var all []*contestant
	var w *peerWork
	for _, name := range j.peers {
		p := peers[slices.IndexFunc(peers, func(p peer) bool { return p.name == name })]
		row := j.row(len(x), 1)
		row.Who, row.C1, row.C2 = name, p.c1(row.K), float64(p.c2(row.K))
		all = append(all, &contestant{Row: row, encode: func() (seconds, _ float64, _ error) {
			if w == nil { // not before one of them does run
				w = newPeerWork(j.matrix, j.e.Rank(), x, y)
			}
			j.e.Exclusive(func() {
				barrier()
				start := time.Now()
				p.encode(w)
				seconds = time.Since(start).Seconds()
			})
			return seconds, 0, nil
		}})
	}
	return all
}

// dropped returns what the command says; rank 0 asks, the others have 0.
func (j *job) dropped() (float64, error) {
	if len(j.drops) == 0 || j.e.Rank() != 0 {
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

// write prints the rows and adds them to the file.
func (j *job) write(rows []Row) error {
	if err := report.Text(os.Stdout, columns(), rows); err != nil {
		return err
	}
	fmt.Println()
	if j.output == "" {
		return nil
	}
	f, err := os.OpenFile(j.output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(writeRows(f, rows), f.Close())
}

// columns are those of what is printed after each size.
func columns() []report.Column[Row] {
	type column = report.Column[Row]
	measured := func(value func(Row) any) func(Row) any {
		return func(r Row) any {
			if r.LeftOut != "" {
				return nil
			}
			return value(r)
		}
	}
	list := []column{
		{Name: "K", Value: func(r Row) any { return r.K }},
		{Name: "p", Value: func(r Row) any {
			if r.Ports == 0 {
				return nil
			}
			return r.Ports
		}},
		{Name: "size", Value: func(r Row) any { return bench.Size(int64(r.Size)) }},
		{Name: "who", Value: func(r Row) any { return strings.TrimSpace(r.Who + " " + r.Plan) }},
		{Name: "C1", Value: func(r Row) any { return r.C1 }},
		{Name: "C2", Value: func(r Row) any { return digits(r.C2) }},
		{Name: "time", Unit: "s, median", Value: measured(func(r Row) any { return digits(r.Seconds) })},
		{Name: "agree", Unit: "s", Value: measured(func(r Row) any {
			if r.Agreement == 0 {
				return nil
			}
			return digits(r.Agreement)
		})},
		{Name: "model", Unit: "s", Value: func(r Row) any { return digits(r.Predicted) }},
		{Name: "ratio", Unit: "to model", Value: measured(func(r Row) any { return digits(r.Ratio()) })},
	}
	for _, name := range peerNames {
		list = append(list, column{Name: name, Unit: "times faster", Value: func(r Row) any {
			if x, ok := r.Faster[name]; ok {
				return digits(x)
			}
			return nil
		}})
	}
	return append(list,
		column{Name: "dropped", Unit: "packets", Value: measured(func(r Row) any {
			if r.Dropped == nil {
				return nil
			}
			return digits(*r.Dropped)
		})},
		column{Name: "#wrong", Value: measured(func(r Row) any { return r.Wrong })},
		column{Name: "left out", Value: func(r Row) any { return r.LeftOut }},
	)
}
