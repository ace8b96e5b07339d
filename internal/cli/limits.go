package cli

import (
	"context"
	"runtime"

	"github.com/spf13/pflag"

	"volley/internal/delay"
	"volley/internal/exit"
	"volley/internal/selection"
)

// limits are the flags of what a run may take from what else runs beside it.
type limits struct {
	rate  string // bytes a second; "": no limit
	cores int    // 0: all
	nice  int
}

// leastRate is the least value of --limit-rate and --limit-read: with less, messages, or what they wait for, would take
// longer than others wait for them.
const leastRate = 1 << 20

func (o *limits) add(f *pflag.FlagSet) {
	f.StringVar(&o.rate, "limit-rate", "", "`BYTES` a second that each process sends at most, such as 100MB")
	f.Var(selection.AtLeast{Value: &o.cores, Least: 1, Unset: 0}, "cores", "`N`, how many cores each process uses at most")
	f.Var(selection.AtLeast{Value: &o.nice}, "nice", "`N`, by how much each process lowers its priority, up to 19 in all, as nice does")
}

// apply lowers what this process may take.
func (o *limits) apply() error {
	if o.cores > 0 {
		runtime.GOMAXPROCS(min(o.cores, runtime.GOMAXPROCS(0)))
	}
	if o.nice > 0 {
		return lowerPriority(o.nice)
	}
	return nil
}

// slow has a party send no faster than it may.
func (o *limits) slow(ctx context.Context, p *party) error {
	n, err := rate("--limit-rate", o.rate)
	switch {
	case err != nil || n == 0:
		return err
	case !p.job():
		return exit.Usagef("--limit-rate %s: all is in this process, which sends nothing: leave it out", o.rate)
	}
	p.Transport = delay.Limit(ctx, p.Transport, n)
	return nil
}

// rate returns the bytes a second that a flag says; 0: it says none.
func rate(flag, value string) (int64, error) {
	if value == "" {
		return 0, nil
	}
	n, err := selection.ParseSize(value)
	if err != nil || n < leastRate {
		return 0, exit.Usagef("%s %q: want bytes a second such as 20MB, 1MiB or more", flag, value)
	}
	return n, nil
}
