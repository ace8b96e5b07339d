package session

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestMeter rewrites a line, which goes when something else is written, and adds up what several tell of.
func TestMeter(t *testing.T) {
	t.Parallel()
	var stderr, stdout bytes.Buffer
	s := &Invocation{stderr: &stderr, Verb: "protect"} // the line is written whenever there is something new
	s.meter = &meter{s: s, rewrites: true, begun: time.Now()}
	s.meter.add(0, 1<<20)
	time.Sleep(2 * time.Millisecond) // or a true rate could be that of no time
	s.meter.add(1<<19, 0)
	s.meter.add(1<<18, 0)
	if text := stderr.String(); strings.Contains(text, "GiB/s") || !strings.Contains(text, "\rprotect: 512 KiB of 1.0 MiB, 50 %, ") || !strings.Contains(text, "\rprotect: 768 KiB of 1.0 MiB, 75 %, ") || !strings.HasSuffix(strings.TrimSpace(text), "iB/s") || strings.Contains(text, "\n") {
		t.Errorf("%q", text)
	}
	fmt.Fprint(&clearing{Writer: &stdout, s: s}, "a report")
	if text := stderr.String(); !strings.HasSuffix(text, " \r") || stdout.String() != "a report" {
		t.Errorf("%q, %q", text, &stdout)
	}
	s.meter.add(1<<18, 1<<20) // there is more to do than was known
	s.meter.add(1<<20, 0)
	if text := stderr.String(); !strings.Contains(text[strings.LastIndex(text, "\r"):], "2.0 MiB of 2.0 MiB, 100 %, ") {
		t.Errorf("%q", text)
	}
	stderr.Reset()
	less := &meter{s: s, interval: 1}
	for _, x := range [][2]int64{{0, 1 << 20}, {1 << 18, -1 << 20}, {1 << 18, 0}} { // there is less to do than was said
		less.add(x[0], x[1])
	}
	if want := "volley: protect: 256 KiB of 256 KiB, 100 %\nvolley: protect: 512 KiB of 512 KiB, 100 %\n"; stderr.String() != want {
		t.Errorf("%q: want %q", &stderr, want)
	}
	s.stderr = &stderr // no terminal
	if s.Progress(0) != nil || s.Progress(time.Second) == nil {
		t.Error("without a terminal there is progress, or none though it is asked for")
	}
	var none *meter
	none.clear()
}
