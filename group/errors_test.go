package group_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// nodesIn makes the directories of four nodes.
func nodesIn(t *testing.T) (dirs []string) {
	at := t.TempDir()
	for n := range 4 {
		dirs = append(dirs, filepath.Join(at, fmt.Sprint("node", n)))
		must(t, os.Mkdir(dirs[n], 0o777))
		must(t, os.WriteFile(filepath.Join(dirs[n], "notes"), fmt.Append(nil, "what node ", n, " knows"), 0o666))
	}
	return dirs
}
