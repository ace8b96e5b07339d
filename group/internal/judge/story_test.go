package judge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"volley/group/internal/store"
	"volley/group/protection"
)

// TestStories tells what nodes have, and compares what is decided, with go test ./group/internal/judge -rewrite written
// anew. A line is a node: what it has, by generation, and whether that is pending or not complete.
func TestStories(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var tolerate int
			var believe string
			d.ScanArgs(t, "tolerate", &tolerate)
			d.MaybeScanArgs(t, "believe", &believe)
			lines := strings.Split(strings.TrimSpace(d.Input), "\n")
			var states []*store.State
			for n, line := range lines {
				states = append(states, told(t, n, len(lines), tolerate, line))
			}
			c, err := Decide(states, believe)
			switch {
			case err != nil:
				return err.Error() + "\n"
			case c.Generation == 0:
				return fmt.Sprintf("nothing is in force; the next generation is %d\n", c.Newest+1)
			}
			return fmt.Sprintf("generation %d is in force; the next is %d\n", c.Generation, c.Newest+1)
		})
	})
}

// told returns the state of a node in words.
func told(t *testing.T, n, k, tolerate int, line string) *store.State {
	name, what, ok := strings.Cut(line, ": ")
	if !ok {
		t.Fatalf("%q: want NAME: WHAT", line)
	}
	s := &store.State{Dir: name, Node: n, Group: "G", Files: true}
	for _, part := range strings.Split(what, ", ") {
		var g int64
		number, how, _ := strings.Cut(part, " ")
		switch {
		case part == "lost":
			*s = store.State{Dir: name, Node: -1, Lost: true}
		case part == "files, and nothing of Volley's", part == "files only":
			*s = store.State{Dir: name, Node: -1, Files: true}
		case strings.HasPrefix(part, "cannot be read: "):
			*s = store.State{Dir: name, Node: -1, Failing: strings.TrimPrefix(part, "cannot be read: ")}
		default:
			if _, err := fmt.Sscan(number, &g); err != nil {
				t.Fatalf("%q: %q", line, part)
			}
			s.Numbers = append(s.Numbers, g)
			h := store.Held{Generation: g, Group: "G", Node: n, Nodes: k, Tolerate: tolerate, Root: fmt.Sprint("root ", g)}
			switch how {
			case "":
				h.Committed, h.Complete = true, true
			case "pending":
				h.Complete = true
			case "not complete":
			case "its manifest cannot be read", "its manifest is damaged":
				x := store.Unknown{Generation: g, Committed: true, Reason: "it is damaged", Group: "G", Place: protection.Place{Node: n, Nodes: k}}
				if x.Failed = strings.HasSuffix(how, "read"); x.Failed {
					x.Reason = "permission denied"
				}
				s.Unknown = append(s.Unknown, x)
				continue
			default:
				t.Fatalf("%q: %q", line, part)
			}
			s.Held = append(s.Held, h)
		}
	}
	return s
}
