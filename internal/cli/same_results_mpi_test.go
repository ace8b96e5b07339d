//go:build mpi

package cli

import (
	"bytes"
	"strings"
	"testing"
)

func init() {
	ways["mpi"] = func(t *testing.T, verb []string, at []string) (int, string) {
		var stdout bytes.Buffer
		j := newJob(t, len(at), append(verb, at...)...)
		j.Stdout = &stdout
		code, lines := j.do(t) // without mpirun's
		return code, stdout.String() + strings.Join(append(lines, ""), "\n")
	}
}
