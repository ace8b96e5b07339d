package sharedmemory

import (
	"errors"
	"testing"
)

// TestMemory opens memory a second time: what is written through one is read through the other, also when its name is of
// no more use. A name that is wrong opens nothing.
func TestMemory(t *testing.T) {
	const bytes = 3 << 12
	m, name, err := Create(bytes)
	if errors.Is(err, ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer m.Unmap()
	for what, wrong := range map[string]Handle{
		"nonce":      {name.PID, name.Descriptor, name.Nonce + 1},
		"descriptor": {name.PID, 1 << 20, name.Nonce},
		"file":       {name.PID, 0, name.Nonce},
		"process":    {1 << 30, name.Descriptor, name.Nonce},
	} {
		if other, err := Open(wrong, bytes); err == nil {
			other.Unmap()
			t.Errorf("opened with another %s", what)
		}
	}
	if _, err := Open(name, bytes+1); err == nil {
		t.Error("opened with another length")
	}
	other, err := Open(name, bytes)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Unmap()
	m.Opened()
	other.Opened()
	m.Data[bytes-1], other.Data[100] = 7, 9
	if other.Data[bytes-1] != 7 || m.Data[100] != 9 {
		t.Error("what one has written is not what the other reads")
	}
	if _, err := Open(name, bytes); err == nil {
		t.Error("opened when all had opened it")
	}
}
