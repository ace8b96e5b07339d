package group

import (
	"flag"
	"os"
	"testing"

	"volley/internal/disk/disktest"
)

func TestMain(m *testing.M) {
	disktest.InMemory()
	if err := flag.Set("rapid.nofailfile", "true"); err != nil { // the seed will do
		panic(err)
	}
	os.Exit(m.Run())
}
