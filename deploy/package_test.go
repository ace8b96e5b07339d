//go:build linux

package deploy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"

	"github.com/spf13/pflag"

	"volley/internal/cli"
)

// TestMan looks for a page of each verb and topic.
func TestMan(t *testing.T) {
	dir := t.TempDir()
	c := exec.Command("go", "run", "./man", dir)
	c.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1000000000")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	list := cli.Command().Commands()
	for i := 0; i < len(list); i++ {
		cmd := list[i]
		list = append(list, cmd.Commands()...)
		section, want := "1", "Sep 2001"
		if cmd.IsAdditionalHelpTopicCommand() {
			section = "7"
		}
		if cmd.Hidden || cmd.Name() == "completion" || cmd.Name() == "help" {
			continue
		}
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
		page := read(t, filepath.Join(dir, name+"."+section))
		if !strings.Contains(page, want) || !strings.Contains(page, cmd.Short) {
			t.Errorf("%s(%s) lacks %q or %q: %s", name, section, want, cmd.Short, page)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(page, "--"+f.Name) {
				t.Errorf("%s(1) lacks --%s", name, f.Name)
			}
		})
	}
	if err := exec.Command("go", "run", "./man", filepath.Join(dir, "none")).Run(); err == nil {
		t.Error("no error where there is no directory")
	}
}

// TestDockerfile reads the Dockerfile as BuildKit does, and does what it says without an engine.
func TestDockerfile(t *testing.T) {
	text, err := os.Open("Dockerfile")
	must(t, err)
	defer text.Close()
	parsed, err := parser.Parse(text)
	must(t, err)
	if len(parsed.Warnings) > 0 {
		t.Errorf("warnings: %v", parsed.Warnings)
	}
	stages, _, err := instructions.Parse(parsed.AST, nil)
	must(t, err)
	if len(stages) != 2 || stages[1].BaseName != "scratch" {
		t.Fatalf("stages %v, want a build and an image from scratch", stages)
	}
	image, built := t.TempDir(), filepath.Join(t.TempDir(), "volley")
	var start []string
	for _, stage := range stages {
		for _, command := range stage.Commands {
			switch c := command.(type) {
			case *instructions.RunCommand:
				run := exec.Command("/bin/sh", "-c", strings.ReplaceAll(c.CmdLine[0], "-o /volley ", "-o "+built+" "))
				run.Dir = ".." // as after COPY
				if out, err := run.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v: %s", c, err, out)
				}
			case *instructions.CopyCommand:
				if c.From == "" {
					continue
				}
				to := filepath.Join(image, c.DestPath)
				must(t, os.MkdirAll(filepath.Dir(to), 0o755))
				must(t, os.Link(built, to))
			case *instructions.EntrypointCommand:
				start = c.CmdLine
			}
		}
	}
	if os.Getuid() != 0 {
		t.Skip("chroot needs root")
	}
	for _, dir := range []string{"a", "b", "c"} {
		must(t, os.MkdirAll(filepath.Join(image, dir), 0o755))
	}
	must(t, os.WriteFile(filepath.Join(image, "a", "file"), bytes.Repeat([]byte("data"), 1000), 0o644))
	for _, verb := range []string{"version", "protect --tolerate 1 /a /b /c", "verify /a /b /c"} {
		run := exec.Command("chroot", append(append([]string{image}, start...), strings.Fields(verb)...)...)
		if out, err := run.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", verb, err, out)
		}
	}
}
