package engine

import (
	"encoding/json"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCore looks whether the process may leave a core file once it has a secret.
func TestCore(t *testing.T) {
	var was unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_CORE, &was))
	if was.Max < 2 {
		t.Skip("no process here may leave one")
	}
	text, err := json.Marshal(Run{Secret: NewSecret()})
	must(t, err)
	for name, take := range map[string]func() error{
		"a parent's":  func() error { return json.Unmarshal(text, new(Run)) },
		"its own new": func() error { NewSecret(); return nil },
	} {
		must(t, unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: was.Max, Max: was.Max}))
		var got unix.Rlimit
		must(t, take())
		if err := unix.Getrlimit(unix.RLIMIT_CORE, &got); err != nil || got.Cur > 1 {
			t.Errorf("%s secret: %+v, %v", name, got, err)
		}
	}
}
