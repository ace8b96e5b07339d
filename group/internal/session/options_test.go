package session

import (
	"fmt"
	"log/slog"
	"testing"

	"volley"
	"volley/group/protection"
	"volley/internal/disk"
	"volley/internal/disk/disktest"
	"volley/sim"
)

// TestDefaults checks what options are that are not given.
func TestDefaults(t *testing.T) {
	t.Parallel()
	o := Defaulted(Setup{})
	if o.Memory != volley.DefaultMemory || o.Network != volley.DefaultNetwork() || o.Disk != disk.OS || o.Timeout != 0 {
		t.Errorf("%+v", o)
	}
	given := Setup{Settings: protection.Settings{Memory: 1, Network: sim.Network{Latency: 3, Gap: 4}, Log: slog.New(slog.DiscardHandler)}, Disk: disktest.NewMachine().Process()}
	o = given
	if o = Defaulted(o); fmt.Sprint(o) != fmt.Sprint(given) {
		t.Errorf("%+v", o)
	}
}
