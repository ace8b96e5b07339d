package session

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// labName is the command with all verbs here and those of volley/lab.
const LabName = "volley-lab"

// name is the command's own.
func CommandName() string {
	if Extended {
		return LabName
	}
	return "volley"
}

// whereLab says where volley-lab comes from.
const WhereLab = "the archives and packages of a release have it, and in a clone go build ./lab/cmd/volley-lab makes it"

// labAt returns what an error that names volley-lab ends with: where to get it, unless it is here.
func labAt() string {
	if Extended || InstalledLab() != "" {
		return ""
	}
	return "; " + WhereLab
}

// installedLab returns the program beside this one or on PATH; "" where there is none.
func InstalledLab() string {
	file := LabName
	if runtime.GOOS == "windows" {
		file += ".exe"
	}
	if own, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(own), file)); err == nil {
			return path
		}
	}
	path, _ := exec.LookPath(file)
	return path
}

// extended says that this is volley-lab.
var Extended bool
