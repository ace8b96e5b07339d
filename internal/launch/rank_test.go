package launch

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"volley/internal/ssh"
)

// TestLaunchProgress has a launch hear of the bytes that a rank writes.
func TestLaunchProgress(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	parent, err := ssh.Greet(strings.NewReader(""), &out, func() {})
	if err != nil {
		t.Fatal(err)
	}
	p := &Rank{parent: parent, Every: time.Hour}
	p.Progress(0, 100)
	p.Progress(8, 0)
	p.Every = 0
	p.Progress(9, 10)
	var heard []said
	for line := range strings.Lines(out.String()) {
		var m said
		if json.Unmarshal([]byte(line), &m) == nil {
			heard = append(heard, said{Done: m.Done, More: m.More})
		}
	}
	if want := []said{{More: 100}, {Done: 17, More: 10}}; !reflect.DeepEqual(heard, want) {
		t.Errorf("%+v, want %+v", heard, want)
	}
}

// TestCommandResult takes what ranks know of a run together: one that knows is enough.
func TestCommandResult(t *testing.T) {
	t.Parallel()
	for all, want := range map[string]string{
		"ok ok ok": ResultOK, "unknown ok unknown": ResultOK, "unknown failed unknown": ResultFailed, "unknown unknown": ResultUnknown, "failed failed": ResultFailed, "": ResultUnknown,
	} {
		if got := resultOfAll(strings.Fields(all)); got != want {
			t.Errorf("%q: %s, want %s", all, got, want)
		}
	}
}
