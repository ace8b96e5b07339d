// The program peerdas extends the blobs of Ethereum's PeerDAS where their cells
// are: 64 processors hold a cell of each blob, and obtain the 64 cells of the
// extension, a cell each. Nobody collects a blob.
//
// In extend.go is what one would take from here. The processors are goroutines of
// this process, and the cells they end with are compared with the polynomial,
// evaluated point by point; the test compares them with go-eth-kzg.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"sync"
	"text/tabwriter"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"volley"
	"volley/algo"
	"volley/plan"
	"volley/sim"
	"volley/transport"
	"volley/transport/local"
)

func main() {
	log.SetFlags(0)
	ports := flag.Int("p", 1, "messages that a processor may send, and receive, at a time")
	flag.Parse()
	const mostBlobs = 9 // blobs that a block could have before PeerDAS
	if err := demonstrate(context.Background(), os.Stdout, *ports, 1, mostBlobs); err != nil {
		log.Fatal(err)
	}
}

// demonstrate extends random blobs, so many at once, by Volley and by an allgather
// of the blobs, and writes what it took.
func demonstrate(ctx context.Context, w io.Writer, ports int, counts ...int) error {
	if err := describe(w, ports); err != nil {
		return err
	}
	blobs, want := randomBlobs(slices.Max(counts))
	for _, n := range counts {
		fmt.Fprintf(w, "\nblobs at once: %d, so packets of %d elements\n", n, n*cellElements)
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "  \tC1\tC2\tsent by a processor\tresult")
		var chosen *volley.Report
		for _, name := range []string{algo.Auto, "bruck-allgather"} {
			got, report, err := extendAll(ctx, blobs[:n], volley.WithAlgorithm(name), volley.WithPaperModel(ports, volley.DefaultBeta, volley.DefaultTau))
			if err != nil {
				return err
			}
			if chosen == nil {
				chosen = report
			}
			for b := range got {
				if got[b] != want[b] {
					return fmt.Errorf("%s: the extension of blob %d is not the polynomial's", name, b)
				}
			}
			fmt.Fprintf(table, "  %s %s\t%d\t%d\t%d B\tthe polynomial's values\n", report.Algorithm, report.Parameters, report.C1, report.C2, report.BytesSentMax)
		}
		table.Flush()
		for _, note := range chosen.Notes {
			fmt.Fprintln(w, "   ", note)
		}
	}
	return nil
}

// describe writes what there is to choose from.
func describe(w io.Writer, ports int) error {
	front, err := Front(ports)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d processors, p = %d, a Lagrange matrix over bls12-381\n", processors, ports)
	for _, note := range front[0].Info().Notes {
		fmt.Fprintln(w, note)
	}
	for _, p := range front {
		cost := sim.Count(p)
		fmt.Fprintf(w, "  C1 = %-2d C2 = %-3d %s %s\n", cost.C1, cost.C2, p.Info().Algorithm, p.Info().Parameters)
	}
	return nil
}

// Front returns the plans that make use of the points' structure, those
// of which none is worse than another in both C1 and C2.
func Front(ports int) ([]plan.Plan, error) {
	a, err := ExtensionMatrix()
	if err != nil {
		return nil, err
	}
	problem, err := algo.NewProblem(a, ports, algo.Natural)
	if err != nil {
		return nil, err
	}
	folded, err := algo.Lookup("folded-lagrange")
	if err != nil {
		return nil, err
	}
	return folded.Plans(problem)
}

// Half is the cells 0 … 63, or 64 … 127, of an extended blob.
type Half [processors]Cell

// extendAll runs all processors, on their cells of the blobs.
func extendAll(ctx context.Context, blobs []Half, options ...volley.Option) ([]Half, *volley.Report, error) {
	result := make([]Half, len(blobs))
	reports := make([]*volley.Report, processors)
	err := local.Run(ctx, processors, func(ctx context.Context, t transport.Transport) error {
		k := t.Rank()
		mine := make([]Cell, len(blobs))
		for b := range blobs {
			mine[b] = blobs[b][k]
		}
		extension, report, err := Extend(ctx, t, mine, options...)
		if err != nil {
			return err
		}
		for b := range blobs {
			result[b][k] = extension[b]
		}
		reports[k] = report
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return result, volley.Merge(reports), nil
}

// randomBlobs returns n blobs and their extensions: values of random polynomials, by
// the scheme of Horner.
func randomBlobs(n int) (blobs, extensions []Half) {
	blobs, extensions = make([]Half, n), make([]Half, n)
	var running sync.WaitGroup
	for b := range n {
		polynomial := make([]fr.Element, processors*cellElements)
		for i := range polynomial {
			polynomial[i].MustSetRandom()
		}
		for k := range cells {
			running.Go(func() {
				values := make([]fr.Element, cellElements)
				for t := range values {
					x := point(k, t)
					for i := len(polynomial) - 1; i >= 0; i-- {
						values[t].Mul(&values[t], &x)
						values[t].Add(&values[t], &polynomial[i])
					}
				}
				if k < processors {
					blobs[b][k] = cellOf(values)
				} else {
					extensions[b][k-processors] = cellOf(values)
				}
			})
		}
	}
	running.Wait()
	return blobs, extensions
}
