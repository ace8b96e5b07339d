package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"reflect"
	"sync"
	"testing"

	"volley/internal/cli/session"
)

// run runs the command line in a session of its own.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return execute(ctx, session.New(), args, stdout, stderr)
}

// A shared buffer is what several write to, as to a file.
type shared struct {
	mu sync.Mutex // guards the buffer
	b  bytes.Buffer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// asCommand is the environment variable that makes this program the command itself.
const asCommand = "VOLLEY_TEST_COMMAND"

// forCommands returns the environment of processes that this program starts as the command.
func forCommands(more ...string) []string {
	return append(append(os.Environ(), asCommand+"=1"), more...)
}

func thisProgram(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	must(t, err)
	return path
}

// command returns a run of the command line as a process of its own.
func command(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(ctx, thisProgram(t), args...)
	c.Env = forCommands()
	return c
}

// starting returns a session whose processes are the command.
func starting(more ...string) *session.Invocation {
	s := session.New()
	s.Environ = forCommands(more...)
	return s
}

// result runs the command line in the session.
func resultIn(ctx context.Context, s *session.Invocation, args ...string) result {
	var stdout, stderr shared
	code := execute(ctx, s, args, &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

func shell(t *testing.T, script string, args ...string) {
	t.Helper()
	if out, err := exec.Command("sh", append([]string{"-euc", script, "sh"}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T any](t *testing.T, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
