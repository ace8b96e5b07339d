package verify_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"volley/algo/algotest"
	"volley/field"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/matrix/matrixtest"
	"volley/plan"
	"volley/verify"
)

// materialize returns a plan for 7 processors and 2 ports, and its matrix, whose
// entries are all different from 0.
func materialize(t *testing.T, algorithm string) (*plan.Materialized, matrix.Matrix) {
	t.Helper()
	m, err := plan.Materialize(algotest.Compile(t, algorithm, "257", "cauchy", 7, 2))
	if err != nil {
		t.Fatal(err)
	}
	return m, matrixtest.Cauchy(t, fieldtest.Parse(t, "257"), 7)
}

// TestCheckFindsWrongCoefficient changes each coefficient of each program, one at
// a time: every one matters, and the mismatch names processor and entry.
func TestCheckFindsWrongCoefficient(t *testing.T) {
	for _, algorithm := range []string{"universal", "prepare-and-shoot", "bruck-allgather"} {
		m, a := materialize(t, algorithm)
		if err := verify.Check(t.Context(), m, a); err != nil {
			t.Fatal(err)
		}
		for _, prog := range m.Programs {
			lists := [][]plan.Combination{prog.Compute}
			for _, r := range prog.Rounds {
				lists = append(lists, r.Compute)
			}
			for _, list := range lists {
				for _, c := range list {
					for i := range c {
						right := c[i].Coef
						c[i].Coef = m.Common.Field.Add(right, field.One)
						var wrong *verify.MismatchError
						if err := verify.Check(t.Context(), m, a); !errors.As(err, &wrong) {
							t.Fatalf("%s, processor %d, term of slot %d changed: error %v", algorithm, prog.Proc, c[i].Slot, err)
						}
						for _, x := range wrong.Mismatches {
							if x.Want != a.At(x.Row, x.Column) || x.Got == x.Want || x.Column != x.Proc {
								t.Fatalf("%s: %v", algorithm, x)
							}
						}
						c[i].Coef = right
					}
				}
			}
		}
	}
}

// TestCheckRejects checks that rules, shapes and fields are checked too.
func TestCheckRejects(t *testing.T) {
	m, a := materialize(t, "bruck-allgather")
	if err := verify.Check(t.Context(), m, matrixtest.Cauchy(t, fieldtest.Parse(t, "2^8"), 7)); err == nil {
		t.Error("a matrix over another field was accepted")
	}
	for _, size := range [][2]int{{6, 7}, {7, 6}, {8, 8}} {
		want := fmt.Sprintf("verify: a plan of 7 rows and 7 columns and a matrix of %d and %d", size[0], size[1])
		if err := verify.Check(t.Context(), m, matrix.NewDense(m.Common.Field, size[0], size[1])); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	want := fmt.Sprintf("verify: entry (0, 0) of the matrix is %v, outside the field 257", outside{a}.At(0, 0))
	if err := verify.Check(t.Context(), m, outside{a}); err == nil || err.Error() != want {
		t.Errorf("error %v of a matrix with an entry outside the field", err)
	}
	m.Programs[2].Rounds[0].Sends[0].Dst = 2
	var invalid *plan.ValidationError
	if err := verify.Check(t.Context(), m, a); !errors.As(err, &invalid) {
		t.Errorf("error %v, want a plan.ValidationError", err)
	}
}

// An outside matrix has codes that no element has, with the low bytes of another matrix.
type outside struct{ matrix.Matrix }

func (m outside) At(i, j int) field.Element { return field.Code(m.Matrix.At(i, j)[0] + 1<<16) }

func TestMismatchErrorText(t *testing.T) {
	list := []verify.Mismatch{{Proc: 1, Slot: 2, Row: 3, Column: 4, Got: field.Code(5), Want: field.Code(6)}, {Proc: 9}}
	const text = "verify: processor 1, slot 2: coefficient of x3 in y4 is 5, want 6"
	for count, want := range map[int]string{1: text, 2: text + " (and 1 more)", 1000: text + " (and 999 more)"} {
		err := verify.MismatchError{Mismatches: list[:min(count, 2)], Count: count}
		if got := err.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestMismatchErrorIsBounded checks that a plan for quite another matrix gives an
// error of bounded size that counts all mismatches.
func TestMismatchErrorIsBounded(t *testing.T) {
	const k = 24
	p := algotest.Compile(t, "universal", "257", "cauchy", k, 1)
	var wrong *verify.MismatchError
	err := verify.Check(t.Context(), p, matrix.NewDense(p.Info().Field, k, k))
	if !errors.As(err, &wrong) || wrong.Count != k*k || len(wrong.Mismatches) != 100 {
		t.Errorf("error %v with %d mismatches listed, want %d and 100 listed", err, len(wrong.Mismatches), k*k)
	}
}

// TestPlanInPieces checks that the matrix of a plan which cuts packets may be that of whole packets.
func TestPlanInPieces(t *testing.T) {
	f := fieldtest.Parse(t, "257")
	one, two := field.One, f.Add(field.One, field.One)
	three := f.Add(two, one)
	coefs := []field.Element{one, three, two, one} // a 2×2 matrix, row by row
	m := &plan.Materialized{Common: plan.Info{Field: f, Processors: 2, Ports: 1, Rows: 6, Columns: 6, Pieces: 3, Phases: []plan.Phase{{Name: "swap", Rounds: 1}}}}
	for k := range 2 {
		p := &plan.Program{Proc: k, Inputs: 3, Outputs: []plan.Slot{6, 7, 8}, Rounds: []plan.Round{{
			Sends: []plan.Send{{Dst: 1 - k, Slots: []plan.Slot{0, 1, 2}}}, Recvs: []plan.Recv{{Src: 1 - k, Count: 3}},
		}}}
		for piece := range 3 {
			p.Compute = append(p.Compute, plan.Combination{{Slot: piece, Coef: coefs[2*k+k]}, {Slot: 3 + piece, Coef: coefs[2*(1-k)+k]}})
		}
		m.Programs = append(m.Programs, p)
		m.Rows = append(m.Rows, []int{3 * k, 3*k + 1, 3*k + 2})
		m.Columns = append(m.Columns, []int{3 * k, 3*k + 1, 3*k + 2})
	}
	a := matrix.NewDense(f, 2, 2)
	for i, c := range coefs {
		a.Set(i/2, i%2, c)
	}
	if err := verify.Check(t.Context(), m, a); err != nil {
		t.Error(err)
	}
	for _, size := range [][2]int{{2, 3}, {3, 2}} {
		want := fmt.Sprintf("verify: a plan of 6 rows and 6 columns and a matrix of %d and %d", size[0], size[1])
		if err := verify.Check(t.Context(), m, matrix.NewDense(f, size[0], size[1])); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	a.Set(1, 0, one)
	var wrong *verify.MismatchError
	if err := verify.Check(t.Context(), m, a); !errors.As(err, &wrong) || wrong.Count != 3 || wrong.Mismatches[0].Row != 3 || wrong.Mismatches[0].Column != 0 {
		t.Errorf("%v", err)
	}
}

// TestCheckError checks what the command line says of a run that failed its check, and how it ends.
func TestCheckError(t *testing.T) {
	err := &verify.CheckError{Proc: 2}
	if want := "verify: the coded packet of processor 2 is not"; !strings.HasPrefix(err.Error(), want) || err.ExitCode() != 3 {
		t.Errorf("%v with exit code %d, want %s … and 3", err, err.ExitCode(), want)
	}
}
