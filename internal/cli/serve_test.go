package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"volley/engine"
	"volley/internal/exit"
	"volley/transport/transporttest"
)

// A served process runs verbs as lines of standard input say.
type served struct {
	in    io.WriteCloser
	out   *json.Decoder
	ended func() error
}

// reply returns what the process says of a verb, and its log before it.
func (x served) reply(t *testing.T) (r reply, log string) {
	t.Helper()
	for {
		var line json.RawMessage
		must(t, x.out.Decode(&line))
		if strings.HasPrefix(string(line), `{"exit_code"`) {
			must(t, json.Unmarshal(line, &r))
			return r, log
		}
		log += string(line) + "\n"
	}
}

// TestServe has three processes protect snapshots one after the other with what they have met for the first, until one
// is not there: all end by that.
func TestServe(t *testing.T) {
	t.Parallel()
	meet, base := transporttest.Free(t), t.TempDir()
	secret, err := engine.NewSecret().MarshalText()
	must(t, err)
	var ranks []served
	for range 3 {
		c := command(t.Context(), t, "serve")
		in, err := c.StdinPipe()
		must(t, err)
		out, err := c.StdoutPipe()
		must(t, err)
		c.Stderr = c.Stdout
		must(t, c.Start())
		ranks = append(ranks, served{in, json.NewDecoder(out), c.Wait})
	}
	for step, want := range []int{exit.OK, exit.OK, exit.Usage} {
		for r, x := range ranks {
			root := filepath.Join(base, fmt.Sprint(r))
			if want == exit.OK {
				file := filepath.Join(root, fmt.Sprint("step-", step), "file")
				must(t, os.MkdirAll(filepath.Dir(file), 0o777))
				write(t, file, fmt.Sprint(r, step))
			}
			args := []string{"protect", "--step", fmt.Sprint(step), "--tolerate", "1", "--json", "--log-format", "json", "--verbose", root}
			if step == 0 {
				args = append(args, "--rank", fmt.Sprint(r), "--size", "3", "--meet", meet, "--port", "")
			}
			json.NewEncoder(x.in).Encode(request{args, string(secret)})
		}
		for r, x := range ranks {
			got, log := x.reply(t)
			met := strings.Contains(log, `"msg":"listens"`)
			if got.Code != want || strings.Contains(got.Printed, fmt.Sprintf(`"step": %d`, step)) != (r == 0 && want == exit.OK) || met != (step == 0) {
				t.Errorf("rank %d, step %d: %v, log %s", r, step, got, log)
			}
		}
	}
	for _, x := range ranks {
		if err := x.ended(); exit.Code(err) == exit.OK {
			t.Error("a process goes on after an error")
		}
	}
}

// TestServeAlone has a process end with its standard input, also where it waits for others.
func TestServeAlone(t *testing.T) {
	t.Parallel()
	waits := `{"args": ["verify", "--rank", "0", "--size", "2", "--meet", "127.0.0.1:0", "x"], "secret": "` + strings.Repeat("7", 64) + `"}`
	for _, line := range []string{"", waits} {
		c := command(t.Context(), t, "serve")
		c.Stdin = strings.NewReader(line)
		out, err := c.CombinedOutput()
		if line == "" && err != nil || line != "" && !strings.Contains(string(out), errAlone.Error()) {
			t.Errorf("%q: %v, %s", line, err, out)
		}
	}
}
