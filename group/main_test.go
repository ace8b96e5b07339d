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
	debug.SetGCPercent(400)                                      // worlds are cloned for each call, and none is kept long
	if err := flag.Set("rapid.nofailfile", "true"); err != nil { // the seed will do
		panic(err)
	}
	os.Exit(m.Run())
}
