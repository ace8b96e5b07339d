package coded

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"volley"
	"volley/algo"
	"volley/field"
	"volley/field/fieldtest"
	"volley/matrix/matrices"
	"volley/transport"
	"volley/transport/local"
)

// oneRound is a transport that has tags for plans of one round.
type oneRound struct{ transport.Transport }

func (oneRound) Limits() transport.Limits {
	return transport.Limits{{Rounds: transport.ControlRounds + 1, Ports: 8}}
}

// TestLimits refuses a plan that is given and not carried, before there is a directory, also in a dry run; and estimates
// the plan that is carried where there is a choice.
func TestLimits(t *testing.T) {
	t.Parallel()
	f := fieldtest.Parse(t, "2^8")
	spec := matrices.Spec{Family: "cauchy"}
	a, err := spec.Build(f, 4, 4)
	if err != nil {
		t.Fatal(err)
	}
	algorithm, err := algo.Lookup("universal")
	if err != nil {
		t.Fatal(err)
	}
	two, err := algorithm.Compile(a, 1) // of two rounds
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "packet"), make([]byte, 64), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		dry, given, free bool
	}{{false, true, false}, {true, true, false}, {true, false, false}, {true, false, true}} {
		errs, reports := make([]error, 4), make([]*volley.Report, 4)
		out := filepath.Join(dir, "out")
		local.Run(t.Context(), 4, func(ctx context.Context, tr transport.Transport) error {
			e := Encoding{Options: Options{Dir: out, DryRun: x.dry, Job: true, Timeout: time.Minute}, Field: f, Matrix: spec, Files: []string{filepath.Join(dir, "packet")}, Processors: 4}
			e.Encoder = func(field.Field, int64) ([]volley.Option, error) {
				if x.given {
					return []volley.Option{volley.WithPlan(two)}, nil
				}
				n := volley.DefaultNetwork()
				n.Overhead = time.Second // for few messages, in two rounds
				return []volley.Option{volley.WithNetwork(n)}, nil
			}
			if !x.free {
				tr = oneRound{tr}
			}
			reports[tr.Rank()], errs[tr.Rank()] = Encode(ctx, tr, e)
			return nil
		})
		for rank, err := range errs {
			if x.given && (!errors.As(err, new(*InputError)) || !errors.As(err, new(*volley.PlanError)) || !errors.As(err, new(*transport.LimitsError))) && !errors.As(err, new(*transport.AbortError)) {
				t.Errorf("dry run %v: rank %d: %v", x.dry, rank, err)
			} else if !x.given && (err != nil || (reports[rank].C1 == 1) == x.free) {
				t.Errorf("a plan is chosen, for any transport %v: rank %d: %+v, %v", x.free, rank, reports[rank], err)
			}
		}
		if _, err := os.Stat(out); !os.IsNotExist(err) {
			t.Errorf("dry run %v: there is a directory: %v", x.dry, err)
		}
	}
}
