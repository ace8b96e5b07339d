package field

import "testing"

func TestVector(t *testing.T) {
	for _, c := range []struct {
		code, p uint64
		degree  int
	}{{0, 2, -1}, {1, 2, 0}, {2, 2, 1}, {0b1011, 2, 3}, {2 + 2*3 + 9, 3, 2}} {
		v := vectorOf(c.code, c.p)
		if v.degree() != c.degree || v.code(c.p) != c.code {
			t.Errorf("%d over F_%d: degree %d, code %d", c.code, c.p, v.degree(), v.code(c.p))
		}
	}
}
