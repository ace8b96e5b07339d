package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// snapshot copies a module, without version control, so that tests see the same files
// however long they run, and write to none of the original. Files that are gone from
// the module go.
func snapshot(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || path == filepath.Dir(to)):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o777)
		case !d.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, info.Mode().Perm())
	})
}

// overlay writes the rewritten files to dir, and two descriptions of what they stand
// for, for the go command: that of ordinary binaries, and that of those that record points.
func (prog *program) overlay(dir string) (ordinary, reach string, err error) {
	replace := map[string]string{}
	write := func(name, text string) (string, error) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return "", err
		}
		return path, os.WriteFile(path, []byte(text), 0o666)
	}
	for name, text := range prog.files {
		path, err := write(name, text)
		if err != nil {
			return "", "", err
		}
		replace[filepath.Join(prog.root, filepath.FromSlash(name))] = path
	}
	describe := func(name string) (string, error) {
		data, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
		if err != nil {
			return "", err
		}
		return write(name, string(data))
	}
	if ordinary, err = describe("ordinary.json"); err != nil {
		return "", "", err
	}
	mode, err := write("reach.go", fmt.Sprintf("package mutant\n\nconst (\n\treaching = true\n\tpoints = %d\n)\n", len(prog.points)))
	if err != nil {
		return "", "", err
	}
	replace[filepath.Join(prog.root, filepath.FromSlash(runtimeDir), "mode.go")] = mode
	reach, err = describe("reach.json")
	return ordinary, reach, err
}

// build compiles the two binaries of each package's tests.
func (prog *program) build(dir string, tests []*testBinary) error {
	ordinary, reach, err := prog.overlay(filepath.Join(dir, "overlay"))
	if err != nil {
		return err
	}
	bin := filepath.Join(dir, "bin")
	if err := os.MkdirAll(bin, 0o777); err != nil {
		return err
	}
	for _, t := range tests {
		base := filepath.Join(bin, strings.ReplaceAll(t.Package, "/", "_"))
		t.path, t.reach = base+".test", base+".reach.test"
		for _, b := range [][2]string{{t.path, ordinary}, {t.reach, reach}} {
			cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", b[1], "-o", b[0], t.Package)
			cmd.Dir = prog.root
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("building the tests of %s: %w\n%s", t.Package, err, out)
			}
		}
	}
	return nil
}
