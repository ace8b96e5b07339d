package plan_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"volley/algo"
	"volley/field"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
)

// compile makes the plan of an algorithm for a random matrix.
func compile(t testing.TB, name, fieldName string, k, ports int) plan.Plan {
	t.Helper()
	return compileFor(t, name, matrix.Spec{Family: "random", Argument: "1"}, fieldName, k, ports)
}

// compileFor makes the plan of least C2 of an algorithm.
func compileFor(t testing.TB, name string, spec matrix.Spec, fieldName string, k, ports int) plan.Plan {
	t.Helper()
	f, err := field.Parse(fieldName)
	if err != nil {
		t.Fatal(err)
	}
	a, err := algo.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := spec.Build(f, k, k)
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.Compile(m, ports)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestGolden shows small schedules as people and programs read them. Rewrite the
// files with -rewrite only when a schedule or its form is meant to change, and
// read the difference.
//
//	describe algorithm=A k=K p=P   all processors
//	program algorithm=A k=K p=P proc=N   one processor, slot by slot
//	json algorithm=A k=K p=P   the JSON form
//
// with matrix=, order= and field= for other matrices than a random one over 257.
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata/golden", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var name string
			var k, ports, proc int
			d.ScanArgs(t, "algorithm", &name)
			d.ScanArgs(t, "k", &k)
			d.ScanArgs(t, "p", &ports)
			spec, fieldName := matrix.Spec{Family: "random", Argument: "1"}, "257"
			if d.HasArg("matrix") {
				spec.Argument = ""
				d.ScanArgs(t, "matrix", &spec.Family)
			}
			if d.HasArg("order") {
				d.ScanArgs(t, "order", &spec.Order)
			}
			if d.HasArg("field") {
				d.ScanArgs(t, "field", &fieldName)
			}
			p := compileFor(t, name, spec, fieldName, k, ports)
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
