package group

import (
	"os"
	"runtime/debug"
	"testing"

	"volley/internal/disk/disktest"
	_ "volley/internal/rapidseed"
)

func TestMain(m *testing.M) {
	disktest.InMemory()
	debug.SetGCPercent(400) // worlds are cloned for each call, and none is kept long
	os.Exit(m.Run())
}
