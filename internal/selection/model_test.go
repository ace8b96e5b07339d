package selection

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"volley"
	"volley/field/fieldtest"
	"volley/sim"
)

// TestModel checks which model flags select, and what a report says of it.
func TestModel(t *testing.T) {
	t.Parallel()
	network := func(name string) sim.Network {
		n, err := sim.ParseNetwork(name)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	const preset, here = "chosen for the network 10gbit/20us: --network names yours", "chosen for one process, in which messages cost next to nothing"
	for _, c := range []struct {
		args    string
		process bool
		want    sim.Model
		assumed string
	}{
		{"", false, sim.Model{Network: volley.DefaultNetwork()}, preset},
		{"", true, sim.Model{Network: network("process"), Gamma: sim.ProcessGamma}, here},
		{"--network wan", true, sim.Model{Network: network("wan")}, ""},
		{"--network process --gamma 1ns", false, sim.Model{Network: network("process"), Gamma: 1e-9}, ""},
		{"--model paper", true, sim.Model{Beta: volley.DefaultBeta, Tau: volley.DefaultTau}, ""},
		{"--model paper --beta 1ms -p 3", false, sim.Model{Beta: time.Millisecond, Tau: volley.DefaultTau}, ""},
	} {
		s := modelOf(t, c.args)
		s.Process = c.process
		m, err := s.Model(fieldtest.Parse(t, "2^8"), 5)
		c.want.Bytes, c.want.SymbolBytes = 5, 1
		if err != nil || m != c.want || s.Assumed != c.assumed {
			t.Errorf("%s: %+v, %q, %v: want %+v, %q", c.args, m, s.Assumed, err, c.want, c.assumed)
		}
	}
	for args, want := range map[string]string{
		"--ports 1": "--ports belongs to --model paper", "--tau 1ns": "--tau belongs to --model paper", "--beta 1us": "--beta belongs to --model paper",
		"--model paper --network wan": "--network belongs to --model network", "--network 0gbit/1us": "want a rate and a latency",
		"--network 1gbit/2h": "want a rate and a latency",
	} {
		if _, err := modelOf(t, args).Model(fieldtest.Parse(t, "2^8"), 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v: want %q", args, err, want)
		}
	}
}

// modelOf returns a selection with the flags of a model.
func modelOf(t *testing.T, args string) *Selection {
	t.Helper()
	s, f := new(Selection), pflag.NewFlagSet("", pflag.ContinueOnError)
	s.AddModel(f, NetworkModel)
	if err := f.Parse(strings.Fields(args)); err != nil {
		t.Fatal(err)
	}
	return s
}
