package field

import "testing"

func TestVector(t *testing.T) {
	for _, c := range []struct {
		code, p uint64
		degree  int
		text    string
	}{{0, 2, -1, "0"}, {1, 2, 0, "1"}, {2, 2, 1, "X"}, {0b1011, 2, 3, "X^3+X+1"}, {2 + 2*3 + 9, 3, 2, "X^2+2X+2"}} {
		v := vectorOf(c.code, c.p)
		if v.degree() != c.degree || v.String() != c.text || v.code(c.p) != c.code {
			t.Errorf("%d over F_%d: degree %d, %s, code %d", c.code, c.p, v.degree(), v, v.code(c.p))
		}
	}
}
