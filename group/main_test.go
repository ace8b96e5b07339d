package group

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"

	"volley/internal/disk/disktest"
)

func TestMain(m *testing.M) {
	disktest.InMemory()
	debug.SetGCPercent(400)                                                         // worlds are cloned for each call, and none is kept long
	settings := map[string]string{"rapid.nofailfile": "true", "rapid.checks": "40"} // the seed of a failure will do
	for name, value := range settings {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
