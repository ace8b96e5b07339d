package draw

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"volley/algo"
	"volley/field"
	"volley/matrix"
)

func TestTry(t *testing.T) {
	f, err := field.Parse("2^8")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		n    string
		k, p int
	}{{"universal", 4, 1}, {"universal", 8, 1}, {"universal", 9, 2}, {"universal", 16, 1}, {"prepare-and-shoot", 16, 1}, {"central", 8, 1}, {"central", 9, 2}, {"universal", 64, 1}, {"universal", 64, 3}, {"universal", 1, 1}, {"universal", 2, 1}, {"universal", 3, 2}, {"prepare-and-shoot", 11, 1}, {"direct", 5, 2}, {"ring-allgather", 5, 1}, {"bruck-allgather", 10, 1}, {"prepare-and-shoot", 9, 2}, {"universal", 16, 3}} {
		m, err := matrix.Cauchy(f, c.k)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := algo.Lookup(c.n)
		p, err := a.Compile(m, c.p)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := SVG(&b, p); err != nil {
			t.Fatal(err)
		}
		os.WriteFile(fmt.Sprintf("/tmp/dv/%s-%d-%d.svg", c.n, c.k, c.p), b.Bytes(), 0o644)
	}
}
