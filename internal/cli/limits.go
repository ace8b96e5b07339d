package cli

import (
	"context"
	"runtime"

	"github.com/spf13/pflag"

	"volley/internal/selection"
	"volley/transport/late"
)

// limits are the flags of what a run may take from what else runs beside it.
type limits struct {
	rate  string // bytes a second; "": no limit
	cores int    // 0: all
	nice  int
}

// leastRate is the least value of --limit-rate: with less, messages would take longer than others wait for them.
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
	if o.rate == "" {
		return nil
	}
	rate, err := selection.ParseSize(o.rate)
	switch {
	case err != nil || rate < leastRate:
		return usagef("--limit-rate %q: want bytes a second such as 100MB, 1MiB or more", o.rate)
	case !p.job():
		return usagef("--limit-rate %s: all is in this process, which sends nothing: leave it out", o.rate)
	}
	p.Transport = late.Limit(ctx, p.Transport, rate)
	return nil
}
