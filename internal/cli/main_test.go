package cli

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"volley/engine"
	"volley/internal/disk/disktest"
)

// statusFile is the variable that names a file for what Linux says of a process at its end.
const statusFile = "VOLLEY_TEST_STATUS"

// played are programs that this one is where it is called so.
var played = map[string]func(args []string) (code int){}

// TestMain keeps what has launched the tests out of them, and their files in memory.
func TestMain(m *testing.M) {
	if play := played[filepath.Base(os.Args[0])]; play != nil {
		os.Exit(play(os.Args[1:]))
	}
	if os.Getenv(asCommand) != "" {
		end(Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	for _, variable := range []string{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", engine.SecretVariable} {
		os.Unsetenv(variable)
	}
	disktest.InMemory()
	flag.Parse()
	flag.Set("test.testlogfile", "") // 200 MB of names of files, which go test would look at to keep the result
	end(m.Run())
}

// end ends this process, of which the status comes to its file.
func end(code int) {
	if name := os.Getenv(statusFile); name != "" {
		status, _ := os.ReadFile("/proc/self/status")
		os.WriteFile(name, status, 0o600)
	}
	os.Exit(code)
}
