package group

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRotRenamed renames a file with another content and its time, by itself and as one of several of its length and time:
// it is named, however the data is cut. A file that holds what one of them held is not, nor one whose time is a whole second.
func TestRotRenamed(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_700_000_000, 123_456_789)
	for _, x := range []struct {
		what     string
		time     time.Time
		tolerate int // of the second run
		rot      bool
		named    bool
	}{
		{"rotten", at, 1, true, true},
		{"rotten, and coded in another way", at, 2, true, true},
		{"sound", at, 1, false, false},
		{"sound, and coded in another way", at, 2, false, false},
		{"a time that may be made up", at.Truncate(time.Second), 1, true, false},
	} {
		for _, script := range []string{"mv b z", "mv b z; mv c y; mv d x", "mv c z; mv d x; rm x"} {
			w, rng := newWorld(4, 1), rand.New(rand.NewPCG(3, 3))
			for _, name := range strings.Fields("a b c d") {
				w.WriteFile("/n0/"+name, random(rng, 150_000), 0o644)
				w.SetTime("/n0/"+name, x.time)
			}
			must(t, w.protect())
			if x.rot {
				w.setBack("/n0/"+script[3:4], 149_900, []byte("rot"))
			}
			w.do(script)
			r, err := w.protectBy(w.Process(), ProtectOptions{Tolerate: x.tolerate, Full: true})
			must(t, err)
			if named := slices.Equal(r.Doubtful, []string{"/n0/z"}); named != x.named || r.Doubtful != nil && !named {
				t.Errorf("%s: %s: %q", x.what, script, r.Doubtful)
			}
			must(t, w.whole())
		}
	}
}
