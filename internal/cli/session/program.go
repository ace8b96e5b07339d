package session

import (
	"os"
	"os/exec"
	"path/filepath"
)

// LabName is the command with all verbs here and those of volley/lab.
const LabName = "volley-lab"

// CommandName is that of this command line.
var CommandName = "volley"

// WhereLab says where volley-lab comes from.
const WhereLab = "the archives and packages of a release have it, and in a clone go build ./lab/cmd/volley-lab makes it"

// InstalledLab returns the program beside this one or on PATH; "" where there is none.
func InstalledLab() string {
	if executable, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(executable), LabName)); err == nil {
			return path
		}
	}
	path, _ := exec.LookPath(LabName)
	return path
}
