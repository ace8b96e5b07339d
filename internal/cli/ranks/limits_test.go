package ranks

import (
	"runtime"
	"testing"
)

// TestApply lowers the number of cores, and never raises it.
func TestApply(t *testing.T) {
	cores := runtime.GOMAXPROCS(0)
	for _, c := range []struct{ n, want int }{{1, 1}, {cores + 1, cores}, {0, cores}} {
		if err := (&limits{cores: c.n}).apply(); err != nil || runtime.GOMAXPROCS(0) != c.want {
			t.Errorf("--cores %d: %d, error %v", c.n, runtime.GOMAXPROCS(0), err)
		}
		runtime.GOMAXPROCS(cores)
	}
}
