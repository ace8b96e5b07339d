package selection

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"volley"
	"volley/field/fieldtest"
	"volley/sim"
	"volley/tune"
)

// TestModel checks which model flags select, and what a report says of it.
func TestModel(t *testing.T) {
	t.Setenv(tune.Variable, "off")
	network := func(name string) sim.Network {
		n, err := sim.ParseNetwork(name)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	measured := &tune.Result{
		Platform: tune.Platform{Transport: "mpi", Hosts: []string{"a", "b"}, Ranks: 4}, Date: time.Unix(1e9, 0), Network: network("1gbit/50us"),
		Coding: []tune.Coding{{Field: "2^8", SymbolBytes: 1, Cached: 3e-10}},
	}
	path := filepath.Join(t.TempDir(), "tune.json")
	if err := measured.Save(path); err != nil {
		t.Fatal(err)
	}
	old := path + ".old"
	if err := os.WriteFile(old, []byte(`{"format": "volley-tune", "version": 1, "results": []}`), 0o666); err != nil {
		t.Fatal(err)
	}
	const preset, here, by = "a preset: volley tune measures yours", "chosen for one process", "that volley tune measured on 2001-09-0"
	for _, c := range []struct {
		args    string
		process bool
		tune    string
		want    sim.Model
		assumed string // begins, and ends after …
	}{
		{"", false, "off", sim.Model{Network: volley.DefaultNetwork()}, "chosen for the network 10gbit/20us…" + preset},
		{"", true, "off", sim.Model{Network: network("process"), Gamma: sim.ProcessGamma}, here + "…nothing"},
		{"--network wan", true, "off", sim.Model{Network: network("wan")}, ""},
		{"--network process --gamma 1ns", false, "off", sim.Model{Network: network("process"), Gamma: 1e-9}, ""},
		{"--model paper", true, "off", sim.Model{Beta: volley.DefaultBeta, Tau: volley.DefaultTau}, ""},
		{"--model paper --beta 1ms -p 3", false, "off", sim.Model{Beta: time.Millisecond, Tau: volley.DefaultTau}, ""},
		{"", false, path, sim.Model{Network: measured.Network, Gamma: 3e-10}, "chosen for the network " + by + "…4 ranks on 2 hosts"},
		{"", true, path, sim.Model{Network: network("process"), Gamma: 3e-10}, here + "…4 ranks on 2 hosts"},
		{"--network wan", false, path, sim.Model{Network: network("wan"), Gamma: 3e-10}, ""},
		{"--model paper", false, path, sim.Model{Beta: measured.Beta(), Tau: measured.Tau(), Gamma: 3e-10}, "chosen for the β and τ " + by + "…4 ranks on 2 hosts"},
	} {
		t.Setenv(tune.Variable, c.tune)
		s := modelOf(t, c.args)
		s.Process = c.process
		m, err := s.Model(fieldtest.Parse(t, "2^8"), 5)
		c.want.Bytes, c.want.SymbolBytes = 5, 1
		begin, end, _ := strings.Cut(c.assumed, "…")
		if err != nil || m != c.want || !strings.HasPrefix(s.Assumed, begin) || !strings.HasSuffix(s.Assumed, end) || c.assumed == "" && s.Assumed != "" {
			t.Errorf("%s, %s: %+v, %q, %v: want %+v, %q", c.args, c.tune, m, s.Assumed, err, c.want, c.assumed)
		}
	}
	for args, want := range map[string]string{
		"--ports 1": "--ports belongs to --model paper", "--tau 1ns": "--tau belongs to --model paper", "--beta 1us": "--beta belongs to --model paper",
		"--model paper --network wan": "--network belongs to --model network", "--model x": "want network or paper", "--network 0gbit/1us": "want a rate and a latency",
		"--network 1gbit/2h": "want a rate and a latency",
	} {
		if _, err := modelOf(t, args).Model(fieldtest.Parse(t, "2^8"), 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v: want %q", args, err, want)
		}
	}
	t.Setenv(tune.Variable, old)
	if _, err := modelOf(t, "").Model(fieldtest.Parse(t, "2^8"), 1); err == nil || !strings.Contains(err.Error(), old+" was written by an older volley") || !strings.Contains(err.Error(), "measure again") {
		t.Errorf("an old file of volley tune: %v", err)
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
