package engine

import (
	"encoding/json"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCore looks whether the process may leave a core file once it has a secret.
func TestCore(t *testing.T) {
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &was); err != nil {
		t.Fatal(err)
	}
	if was.Max < 2 {
		t.Skip("no process here may leave one")
	}
	text, err := json.Marshal(Run{Secret: NewSecret()})
	if err != nil {
		t.Fatal(err)
	}
	for name, take := range map[string]func() error{
		"a parent's":  func() error { return json.Unmarshal(text, new(Run)) },
		"its own new": func() error { NewSecret(); return nil },
	} {
		if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: was.Max, Max: was.Max}); err != nil {
			t.Fatal(err)
		}
		var got unix.Rlimit
		if err := take(); err != nil {
			t.Fatal(err)
		}
		if err := unix.Getrlimit(unix.RLIMIT_CORE, &got); err != nil || got.Cur > 1 {
			t.Errorf("%s secret: %+v, %v", name, got, err)
		}
	}
}
