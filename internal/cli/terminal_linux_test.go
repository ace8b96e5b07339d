package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// onTerminal runs volley with stdout and stderr on a terminal, and returns what comes there.
func onTerminal(t *testing.T, env string, args ...string) string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals:", err)
	}
	defer master.Close()
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	must(t, err)
	terminal, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	var text bytes.Buffer
	read := make(chan struct{})
	go func() {
		io.Copy(&text, master) // until the terminal is closed
		close(read)
	}()
	c := command(t.Context(), t, args...)
	c.Env, c.Stdout, c.Stderr = append(c.Env, env), terminal, terminal
	err = c.Run()
	terminal.Close()
	<-read
	if err != nil {
		t.Errorf("%v: %v, %s", args, err, &text)
	}
	return text.String()
}

// TestNoColour checks that nothing on a terminal has an escape sequence, progress neither, so NO_COLOR
// has nothing to take away.
func TestNoColour(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 3, 300_000)
	for _, args := range [][]string{
		append([]string{"protect", "--tolerate", "1"}, dirs...), append([]string{"verify", "--limit-read", "1MiB"}, dirs...),
		{"plan", "-k", "4"}, {"--help"},
	} {
		text := onTerminal(t, "NO_COLOR=", args...)
		if text == "" || strings.Contains(text, "\x1b") {
			t.Errorf("%v: %q", args, text)
		}
		if args[0] == "verify" && !strings.Contains(text, "%") {
			t.Errorf("%v: no progress in %q", args, text)
		}
	}
}
