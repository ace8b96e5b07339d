package group

import (
	"os"
	"testing"

	"volley/internal/disk/disktest"
)

func TestMain(m *testing.M) {
	disktest.InMemory()
	os.Exit(m.Run())
}
