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
	p := &Rank{parent: parent, Interval: time.Hour}
	p.Progress(0, 100)
	p.Progress(8, 0)
	p.Interval = 0
	p.Progress(9, 10)
	var heard []message
	for line := range strings.Lines(out.String()) {
		var m message
		if json.Unmarshal([]byte(line), &m) == nil {
			heard = append(heard, message{Finished: m.Finished, Added: m.Added})
		}
	}
	if want := []message{{Added: 100}, {Finished: 17, Added: 10}}; !reflect.DeepEqual(heard, want) {
		t.Errorf("%+v, want %+v", heard, want)
	}
}
