// Ranks runs every processor at a rank of its own, all in this process, and says what time and memory that takes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"time"

	"github.com/spf13/pflag"

	"volley"
	"volley/field"
	"volley/internal/report"
	"volley/internal/selection"
	"volley/transport"
	"volley/transport/local"
)

const usage = `Run every processor at a rank of its own, all in this process, on random packets,
and say what time and memory that takes.

  ranks -k 4096 --field 2^16 --size 64B
  ranks -k 10000 --field 70001 --matrix dft --size 64B
  ranks -k 4096 --field 2^16 --matrix random:1 --size 64B --network 10gbit/20us

The result is checked by random linear combinations. Memory is the most that the
process had resident (Linux), or what Go has taken from the system. Without
--network messages cost next to nothing, and up to 1,024 ranks of a matrix
without structure have a message from each rank to each other one.

Flags:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ranks:", selection.Message(err))
		os.Exit(1)
	}
}

// run does what the arguments say.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	s := &selection.Selection{Process: true}
	f := pflag.NewFlagSet("ranks", pflag.ContinueOnError)
	f.SortFlags, f.Usage = false, func() {}
	s.AddMatrix(f)
	s.AddProcessors(f)
	s.AddPlan(f, selection.NetworkModel)
	s.AddSize(f)
	runs := 1
	f.VarP(selection.Positive(&runs), "runs", "n", "`N`, the runs, one after the other")
	switch err := f.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		_, err := fmt.Fprint(stdout, usage, f.FlagUsagesWrapped(80))
		return err
	case err != nil:
		return err
	case f.NArg() > 0:
		return fmt.Errorf("%q: ranks takes flags only", f.Arg(0))
	}
	s.SetDefaults()
	a, err := s.Build()
	if err != nil {
		return err
	}
	symbols, err := s.Symbols(a.Field())
	if err != nil {
		return err
	}
	model, err := s.Model(a.Field(), symbols)
	if err != nil {
		return err
	}
	// A rank is not dead in a process that lives: with thousands of them it may wait long for its turn.
	e, err := volley.NewEncoder(ctx, a, append(s.Options(model), volley.WithTimeout(0))...)
	if err != nil {
		return err
	}
	n := e.Problem().Processors()
	packets, random := make([]volley.Packet, n), rand.NewChaCha8([32]byte{})
	for k := range packets {
		if _, source := e.Problem().Source(k); source {
			packets[k].Data = make([]byte, symbols*int64(a.Field().SymbolBytes()))
			field.FillRandom(a.Field(), packets[k].Data, random.Uint64)
		}
		if _, sink := e.Problem().Sink(k); sink {
			packets[k].Result = new([]byte)
		}
	}
	for i := range runs {
		began, reports := time.Now(), make([]*volley.Report, n)
		if err := local.Run(ctx, n, func(ctx context.Context, t transport.Transport) (err error) {
			reports[t.Rank()], err = e.Run(ctx, t, packets[t.Rank()])
			return err
		}); err != nil {
			return err
		}
		r := volley.Merge(reports)
		if _, err := fmt.Fprintf(stdout, "run %d: %d ranks, %s %s, C1 %d, C2 %v, C3 %d, %s, %s\n", i+1, n, r.Algorithm, r.Parameters,
			r.C1, r.C2Packets, r.C3, report.Seconds(time.Since(began).Seconds()), memory()); err != nil {
			return err
		}
	}
	return nil
}

// memory says what memory the process has had.
func memory() string {
	status, _ := os.ReadFile("/proc/self/status") // where there is none, the system is another
	if peak := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status); peak != nil {
		var kib int
		fmt.Sscan(string(peak[1]), &kib)
		return fmt.Sprintf("%d MiB at most", kib>>10)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return fmt.Sprintf("%d MiB from the system", m.Sys>>20)
}
