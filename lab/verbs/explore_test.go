package verbs

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
)

// TestExplore serves the page on a free port, asks it for a plan, and ends it as Ctrl-C
// does.
func TestExplore(t *testing.T) {
	t.Parallel()
	line, end := served(t, "--addr", "127.0.0.1:0")
	at, token, ok := strings.Cut(strings.TrimSpace(line), "/?token=")
	if !ok || len(token) < 20 {
		t.Fatalf("the address %s has no token", line)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	if page := get(t, client, strings.TrimSpace(line), ""); !strings.Contains(page, "Volley") {
		t.Errorf("the page: %s", page)
	}
	if answer := get(t, client, at+"/api/plan", `{"flags":{"processors":"4"}}`); !strings.Contains(answer, `"command":"volley-lab plan --model paper -k 4"`) {
		t.Errorf("the plan: %s", answer)
	}
	if code, said := explore(t, "--addr", strings.TrimPrefix(at, "http://")); code != 2 || !strings.Contains(said, "in use") {
		t.Errorf("the same address again: exit %d, %s", code, said)
	}
	if code, said := end(); code != 0 || said != "" {
		t.Errorf("exit %d, %s", code, said)
	}
}

// served runs the verb until end is called, and returns the line that it prints.
func served(t *testing.T, args ...string) (line string, end func() (code int, said string)) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	r, w := io.Pipe()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, newExplore(), append(args, "--open=false"), w, &stderr)
		w.Close()
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatalf("no address: %v, %s", err, stderr.String())
	}
	return line, func() (int, string) {
		cancel(context.Canceled)
		return <-ended, stderr.String()
	}
}

// explore runs the verb where it ends at once, and returns what it says.
func explore(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	var stderr strings.Builder
	code = run(t.Context(), newExplore(), args, io.Discard, &stderr)
	return code, stderr.String()
}

// get returns the body at an address, of a POST if there is something to send.
func get(t *testing.T, client *http.Client, at, send string) string {
	t.Helper()
	response, err := client.Get(at)
	if send != "" {
		response, err = client.Post(at, "application/json", strings.NewReader(send))
	}
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v: %s", at, response.Status, err, body)
	}
	return string(body)
}

func TestExploreErrors(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--addr", "nonsense"}, {"--addr", "192.0.2.1:0", "--public"}, {"there"}, {"--addr", ":0"}, {"--addr", "[::]:0"}} {
		if code, said := explore(t, args...); code != 2 || said == "" || strings.Count(said, "\n") != 1 {
			t.Errorf("%v: exit %d, %s", args, code, said)
		}
	}
}

// TestExplorePublic checks that an address that others reach is taken only when that is asked
// for, and with a warning.
func TestExplorePublic(t *testing.T) {
	t.Parallel()
	if code, said := explore(t, "--addr", "0.0.0.0:0", "--open=false"); code != 2 || !strings.Contains(said, "--public") {
		t.Errorf("exit %d, %s", code, said)
	}
	_, end := served(t, "--addr", "0.0.0.0:0", "--public")
	if code, said := end(); code != 0 || !strings.HasPrefix(said, "warning: other machines reach ") || !strings.Contains(said, "2048 MiB") {
		t.Errorf("exit %d, %s", code, said)
	}
}

func TestReachable(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"127.0.0.1:80": "127.0.0.1:80", "[::1]:80": "[::1]:80", "0.0.0.0:80": "localhost:80", "[::]:80": "localhost:80",
	} {
		if got := reachable(address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
