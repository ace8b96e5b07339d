// The program codedfft computes a large Fourier transform on 16 workers, with 4 parity
// workers, so that no step waits for stragglers: masterless coded computing, with encoding
// and decoding by all-to-all encodes.
//
// In codedfft.go is what one would take from here. The workers are goroutines of this
// process, stragglers sleep, and the result is compared with the transform by one processor.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/consensys/gnark-crypto/field/goldilocks"
	"github.com/consensys/gnark-crypto/field/goldilocks/fft"
	"github.com/consensys/gnark-crypto/utils"

	"volley"
	"volley/transport"
	"volley/transport/local"
)

func main() {
	log.SetFlags(0)
	seed := flag.Uint64("seed", 1, "of the data and of who is late")
	delay := flag.Duration("delay", time.Second, "that a straggler takes more for each step")
	flag.Parse()
	if err := demonstrate(context.Background(), os.Stdout, *seed, *delay, 1<<9); err != nil {
		log.Fatal(err)
	}
}

// demonstrate transforms side² elements without and with parity workers, each without
// and with stragglers.
func demonstrate(ctx context.Context, w io.Writer, seed uint64, delay time.Duration, side int) error {
	const workers, parity = 16, 4
	rng := rand.New(rand.NewPCG(seed, 0))
	x := make([]goldilocks.Element, side*side)
	for i := range x {
		x[i].SetUint64(rng.Uint64())
	}
	want := direct(x)
	var late [2]map[int]time.Duration // of each step, as many as there are parity workers
	for i := range late {
		late[i] = make(map[int]time.Duration)
		for _, r := range rng.Perm(workers + parity)[:parity] {
			late[i][r] = delay
		}
	}

	fmt.Fprintf(w, "%d points over goldilocks, %d workers of %d bytes each, %d parity workers\n", len(x), workers, len(x)*symbolBytes/workers, parity)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  workers\tstragglers in step 1\tin step 2\ttime\tresult")
	var last []Run
	for _, r := range []int{0, parity} {
		for _, stragglers := range [][2]map[int]time.Duration{{}, late} {
			t, err := NewTransform(workers, r, side, side, volley.WithPaperModel(1, volley.DefaultBeta, volley.DefaultTau))
			if err != nil {
				return err
			}
			fmt.Fprintf(table, "  %d+%d", workers, r)
			var steps [2]*Step
			for i, s := range stragglers {
				var names []int
				for rank := range s {
					if rank < workers+r {
						names = append(names, rank)
					}
				}
				slices.Sort(names)
				fmt.Fprintf(table, "\t%v", names)
				steps[i] = t.NewStep(s)
			}
			begin := time.Now()
			got, runs, err := simulate(ctx, t, x, steps)
			if err != nil {
				return err
			}
			fmt.Fprintf(table, "\t%d ms", time.Since(begin).Milliseconds())
			if i := differ(got, want); i >= 0 {
				return fmt.Errorf("point %d is not that of the transform by one processor", i)
			}
			fmt.Fprintln(table, "\tthat of one processor")
			last = runs
		}
	}
	table.Flush()

	fmt.Fprintln(w, "\nWhat the last of these took, for each phase:")
	fmt.Fprintln(table, "  phase\trounds\tpackets\tby")
	for i := range 2 {
		var encodes, decodes []*volley.Report
		for _, run := range last {
			encodes, decodes = append(encodes, run.Encoded[i]), append(decodes, run.Decoded[i]...)
		}
		phase(table, fmt.Sprintf("encode %d", i+1), encodes)
		phase(table, fmt.Sprintf("decode %d", i+1), decodes)
		if i == 0 {
			fmt.Fprintf(table, "  transpose\t%d\t%.4g\ta message to each worker\n", workers-1, float64(workers-1)/workers)
		}
	}
	fmt.Fprintf(table, "  \t\t%d\tall packets to each parity worker, in place of an encode\n", workers)
	return table.Flush()
}

func phase(w io.Writer, name string, reports []*volley.Report) {
	if len(reports) == 0 {
		fmt.Fprintf(w, "  %s\t\t\tno worker was late\n", name)
		return
	}
	r := volley.Merge(reports)
	fmt.Fprintf(w, "  %s\t%d\t%.4g\t%s, %d sources, %d sinks\n", name, r.C1, r.C2Packets, r.Algorithm, r.K, r.Sinks)
}

// simulate runs all workers on x, and returns its transform in order.
func simulate(ctx context.Context, t *Transform, x []goldilocks.Element, steps [2]*Step) ([]goldilocks.Element, []Run, error) {
	runs := make([]Run, t.Workers+t.Parity)
	columns, rows := t.N2/t.Workers, t.N1/t.Workers
	err := local.Run(ctx, len(runs), func(ctx context.Context, tr transport.Transport) (err error) {
		var packet []byte
		if tr.Rank() < t.Workers {
			var v []goldilocks.Element
			for c := range columns {
				for i := range t.N1 {
					v = append(v, x[t.N2*i+tr.Rank()*columns+c])
				}
			}
			packet = appendElements(nil, v)
		}
		runs[tr.Rank()], err = t.Run(ctx, tr, packet, steps)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	result := make([]goldilocks.Element, len(x))
	for rank, run := range runs[:t.Workers] {
		for i, e := range elementsOf(run.Result) {
			k1, k2 := rank*rows+i/t.N2, i%t.N2
			result[k1+t.N1*k2] = e
		}
	}
	return result, runs, nil
}

// direct returns the transform of x by one processor.
func direct(x []goldilocks.Element) []goldilocks.Element {
	v := slices.Clone(x)
	fft.NewDomain(uint64(len(v))).FFT(v, fft.DIF)
	utils.BitReverse(v)
	return v
}

// differ returns the first index where two vectors differ, and -1 where there is none.
func differ(a, b []goldilocks.Element) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}
