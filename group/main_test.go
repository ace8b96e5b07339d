package group

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"

	"volley/internal/disk/disktest"
	_ "volley/internal/rapidseed"
)

func TestMain(m *testing.M) {
	disktest.InMemory()
	debug.SetGCPercent(400)        // worlds are cloned for each call, and none is kept long
	flag.Set("rapid.checks", "40") // a flag of the command line is read after this
	flag.Parse()
	flag.Set("test.testlogfile", "") // 200 MB of names of files, which go test would look at to keep the result
	os.Exit(m.Run())
}
