package plan_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"volley/algo/algotest"
	"volley/matrix/matrices"
	"volley/plan"
	"volley/sim"
)

// TestGolden shows small schedules as people and programs read them. Rewrite the
// files with -rewrite only when a schedule or its form is meant to change, and
// read the difference.
//
//	describe algorithm=A k=K p=P   all processors
//	program algorithm=A k=K p=P proc=N   one processor, slot by slot
//	json algorithm=A k=K p=P   the JSON form
//
// with matrix=, order= and field= for other matrices than a random one over 257. The
// algorithm by-hand is [handmade].
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata/golden", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var name string
			var k, ports, proc int
			d.ScanArgs(t, "algorithm", &name)
			d.ScanArgs(t, "k", &k)
			d.ScanArgs(t, "p", &ports)
			spec, order, fieldName := "random:1", "", "257"
			d.MaybeScanArgs(t, "matrix", &spec)
			d.MaybeScanArgs(t, "order", &order)
			d.MaybeScanArgs(t, "field", &fieldName)
			var p plan.Plan = handmade(t)
			if name != "by-hand" {
				p = algotest.Compile(t, name, fieldName, spec, k, ports, func(s *matrices.Spec) { s.Order = order })
			}
			var out bytes.Buffer
			var err error
			switch d.Cmd {
			case "describe":
				err = plan.Describe(&out, p)
				cost := sim.Count(p)
				fmt.Fprintf(&out, "C1 = %d, C2 = %d\n", cost.C1, cost.C2)
			case "program":
				d.ScanArgs(t, "proc", &proc)
				err = plan.DescribeProgram(&out, p, proc)
			case "json":
				err = plan.Encode(&out, p)
			default:
				t.Fatalf("%s: unknown directive %q", d.Pos, d.Cmd)
			}
			if err != nil {
				return err.Error()
			}
			return trimLines(out.String())
		})
	})
}

// trimLines removes the spaces that a table leaves at the ends of lines.
func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
