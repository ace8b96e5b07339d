package memo

import (
	"errors"
	"testing"
)

// TestBounds fills a cache: what was used least recently goes, and what grows counts.
func TestBounds(t *testing.T) {
	c := New(100)
	made := 0
	ask := func(key int) *Kept {
		t.Helper()
		value, x, err := Get(t.Context(), c, key, 40, func() (int, error) { made++; return -key, nil })
		if value != -key || err != nil {
			t.Fatalf("key %d: %d, %v", key, value, err)
		}
		return x
	}
	for _, step := range []struct{ key, made int }{{1, 1}, {2, 2}, {1, 2}, {3, 3}, {1, 3}, {2, 4}} {
		if ask(step.key); made != step.made {
			t.Errorf("after key %d: made %d times, want %d", step.key, made, step.made)
		}
	}
	c.Grow(ask(1), 40) // 2 has to go
	if ask(1); made != 4 || c.bytes != 80 {
		t.Errorf("made %d times, %d bytes: want 4 and 80", made, c.bytes)
	}
	x := ask(2)
	if c.Grow(x, 1000); c.bytes != 0 || len(c.entries) != 0 || c.order.Len() != 0 {
		t.Errorf("%d bytes in %d entries after one was too much", c.bytes, len(c.entries))
	}
	if c.Grow(x, 1000); c.bytes != 0 { // what was dropped counts no more
		t.Errorf("%d bytes", c.bytes)
	}
	failure := errors.New("not now")
	if _, _, err := Get(t.Context(), c, 5, 40, func() (int, error) { return 0, failure }); err != failure || len(c.entries) != 0 || c.bytes != 0 {
		t.Errorf("error %v, and %d entries of %d bytes are kept", err, len(c.entries), c.bytes)
	}
	ask(5)
	func() {
		defer func() { _ = recover() }()
		_, _, _ = Get(t.Context(), c, 6, 40, func() (int, error) { panic("made nothing") })
	}()
	ask(6)
}
