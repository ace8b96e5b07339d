package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckLarge checks a plan of so many processors that a matrix for them does not fit in memory.
func TestCheckLarge(t *testing.T) {
	t.Parallel()
	const k = 100_000
	var text strings.Builder
	fmt.Fprintf(&text, `{"format":"volley-plan","version":1,"algorithm":"none","parameters":"","field":"babybear",`+
		`"processors":%d,"ports":1,"rows":%d,"columns":%d,"phases":[],"programs":[`, k, k, k)
	for i := range k {
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, `{"proc":%d,"rows":[%d],"rounds":[],"compute":[],"outputs":[{"slot":0,"column":%d}]}`, i, i, i)
	}
	text.WriteString("]}")
	name := filepath.Join(t.TempDir(), "plan.json")
	must(t, os.WriteFile(name, []byte(text.String()), 0o666))
	if out := mustRun(t, "check", name); !strings.Contains(out, "keeps the rules") {
		t.Errorf("%s", out)
	}
}
