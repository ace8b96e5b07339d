package survey

import "testing"

// TestBelow takes directories from the patterns that begin with them.
func TestBelow(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ dir, pattern, want string }{
		{"h3:/home", "h3:/home/u0/f0.dat", "/u0/f0.dat"},
		{"root@h3:/home", "h3:/home/*.dat", "/*.dat"},
		{"root@h3:/home", "!root@h3:/home/u0/", "!/u0/"},
		{"/disk0/n", "/disk0/n/a", "/a"},
		{"/disk0/n", "/disk0/north", ""},
		{"node.1", "node.1", ""},
		{"node.1", "node.1/", ""},
		{"/data/@snap", "snap/a", ""},
		{"/", "/a", "/a"},
	} {
		if got := below(x.dir, x.pattern); got != x.want {
			t.Errorf("%q below %q: %q, want %q", x.pattern, x.dir, got, x.want)
		}
	}
}
