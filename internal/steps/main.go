// Steps tells .ci/run which of its steps a change can break. A line of what it prints is a step with its arguments, or a
// step behind "-" with the reason why it is left out.
//
//	steps                   what is not in the commit that landed last: see base
//	steps -base COMMIT      what is not in this one
//	steps FILE...           these files
//	steps -all              everything
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A step of .ci/run, which has a function of that name. One with none of the first three runs with everything.
type step struct {
	name     string
	always   bool
	packages []string // the change reaches one: it touches what this package or its tests are made of
	paths    []string // files and folders that the change touches
	takes    string   // which packages it takes as arguments: "reached" ones, their "patterns" or the "touched" ones; "" for none
}

// Folders and files that belong to no package of Go. What else is not Go's belongs to the package in whose folder it
// is. A file that is of neither kind can break everything.
var (
	documents = []string{"docs", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "CITATION.cff", ".github", ".gitignore", ".gitattributes", landed, "examples/packets"}
	page      = []string{"lab/web"}
	python    = []string{"python"}
)

const lab = "bench/network/lab"

// steps are in the order in which they run. Where a step is about more than what its program computes, as a browser or a
// queue, it has packages that are below what it is about, and what stands on these as paths, without their imports: go
// test tries the rest in one process. So a change in group takes hosts and jobs, and no browser.
var steps = []step{
	{name: "style", always: true},
	{name: "vet", always: true},
	{name: "readme", always: true, paths: documents},
	{name: "modules", takes: "reached", packages: []string{"./bench/...", "./bench/network/...", "./deploy/...", "./examples/...", "./lab/..."}},
	{name: "race", takes: "patterns", packages: []string{
		".", "./executor/...", "./trace", "./transport/...", "./tune", "./coded", "./collective", "./internal/disk/...", "./internal/faulty", "./internal/delay",
		"./engine", "./group/...", "./internal/sets", "./internal/ssh", "./internal/launch", "./internal/cli/...", "./lab/explore", "./lab/verbs",
	}},
	{name: "kernels", packages: []string{"./field", "./executor/..."}, paths: []string{"field"}},
	{name: "systems", takes: "touched", packages: []string{"./..."}},
	{name: "renamed", paths: []string{"internal/deps"}},
	{name: "vulnerabilities"},
	{name: "python", packages: []string{"./cmd/volley"}, paths: append(python, "docs/first-minutes.md")},
	{name: "torch", paths: append(python, "examples/torch")},
	{name: "losses", packages: []string{"./cmd/volley"}, paths: append(python, "examples/torch", "bench/losses.py", lab)},
	{name: "hosts", packages: []string{"./internal/cli"}, paths: []string{"docs/operations.md", "deploy/systemd", "deploy/snapshots", lab}},
	{name: "slurm", packages: []string{"./engine", "./internal/ssh"}, paths: []string{"internal/cli", "deploy/slurm", "deploy/slurm_linux_test.go", lab}},
	{name: "network", packages: []string{"./bench/network"}},
	{name: "mpi", packages: []string{"./transport/mpi", "./internal/cli", "./cmd/libvolley", "./bench/network", "./examples/mpi"},
		paths: append(python, "examples/mpi-c", "examples/mpi-fortran", "examples/mpi4py", "examples/scr", "examples/solver", "docs/first-minutes.md")},
	{name: "page", packages: []string{".", "./internal/comparison"}, paths: append(page, "lab/explore", "lab/verbs/explore.go")},
	{name: "release", paths: []string{"deploy", "cmd/volley", "cmd/libvolley", "lab/cmd", "version.go"}},
}

func main() {
	all := flag.Bool("all", false, "everything")
	since := flag.String("base", "", "the commit to compare with")
	flag.Parse()
	if err := run(os.Stdout, os.Stderr, ".", *all, *since, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "steps:", err)
		os.Exit(1)
	}
}

func run(out, why io.Writer, root string, all bool, since string, files []string) error {
	if !all && len(files) == 0 {
		reason := "as asked"
		if since == "" {
			since, reason = base(root, os.Getenv("CI") != "")
		}
		if since == "" {
			fmt.Fprintln(why, "everything:", reason)
			all = true
		} else {
			var err error
			if files, err = changed(root, since); err != nil {
				return err
			}
			fmt.Fprintf(why, "%d files differ from %s, %s\n", len(files), since, reason)
		}
	}
	g, err := load(root)
	if err != nil {
		return err
	}
	if !all {
		if file := g.unknown(files); file != "" {
			fmt.Fprintf(why, "everything: %s belongs to no package and to no step\n", file)
			all = true
		}
	}
	for _, s := range steps {
		if args, reason := g.decide(s, all, files); reason == "" {
			fmt.Fprintln(out, strings.Join(append([]string{s.name}, args...), " "))
		} else {
			fmt.Fprintln(out, "-", s.name, reason)
		}
	}
	return nil
}

// landed names the commit that landed last. The first commit of what lands next writes it.
const landed = ".ci/landed"

// base returns the commit to compare with, for which CI has passed, and how it is known; or "" and why it is not. A
// clone of one's own knows from its origin what has landed. A clone that CI tests has what is to land there, too.
func base(root string, ci bool) (commit, why string) {
	if !ci {
		if fork, err := git(root, "merge-base", "HEAD", "origin/HEAD"); err == nil {
			if files, err := changed(root, fork); err == nil && len(files) > 0 {
				return fork, "where this leaves origin"
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(root, landed))
	if err != nil {
		return "", "no " + landed
	}
	commit = strings.TrimSpace(string(text))
	if _, err := git(root, "merge-base", "--is-ancestor", commit+"^{commit}", "HEAD"); err != nil || commit == "" {
		return "", fmt.Sprintf("%s says %q, from which HEAD does not come as far as this clone knows", landed, commit)
	}
	if head, err := git(root, "rev-parse", "HEAD", commit); err != nil || len(slices.Compact(strings.Fields(head))) < 2 {
		return "", landed + " says HEAD"
	}
	return commit, "which " + landed + " says"
}

// changed lists the files that differ from a commit: committed since, or not yet.
func changed(root, commit string) ([]string, error) {
	tracked, err := git(root, "diff", "--name-only", "--no-renames", "-z", commit)
	if err != nil {
		return nil, err
	}
	others, err := git(root, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return nil, err
	}
	return strings.FieldsFunc(tracked+"\x00"+others, func(r rune) bool { return r == 0 }), nil
}

func git(root string, args ...string) (string, error) {
	out, err := command(root, "git", args...)
	return strings.TrimSpace(string(out)), err
}

func command(root, name string, args ...string) ([]byte, error) {
	c := exec.Command(name, args...)
	c.Dir = root
	out, err := c.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, exit.Stderr)
	}
	return out, err
}

// A graph has the packages of all modules by their folders, seen from the root.
type graph map[string]*pkg

type pkg struct {
	made      map[string]bool // the folders of what the package and its tests are made of
	product   bool            // it is of the first module
	elsewhere bool            // some of its files are for other systems
}

// load asks go list, with the tags that more packages need.
func load(root string) (graph, error) {
	modules, err := command(root, "go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return nil, err
	}
	args := []string{"list", "-e", "-test", "-tags", "mpi,verifyall", "-json=ImportPath,Dir,Module,Deps,IgnoredGoFiles"}
	for dir := range strings.Lines(string(modules)) {
		args = append(args, strings.TrimSpace(dir)+"/...")
	}
	c := exec.Command("go", args...)
	c.Dir, c.Stderr = root, os.Stderr
	c.Env = append(os.Environ(), "CGO_ENABLED=1") // packages that need it are listed without a compiler, too
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return nil, err
	}
	type listed struct {
		ImportPath, Dir      string
		Module               struct{ Dir string }
		Deps, IgnoredGoFiles []string
	}
	top, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	folders := map[string]string{} // of import paths
	var list []listed
	for d := json.NewDecoder(out); ; {
		var l listed
		if err := d.Decode(&l); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		rel, err := filepath.Rel(top, l.Dir)
		if err != nil {
			return nil, err
		}
		l.Dir = filepath.ToSlash(rel)
		name, _, _ := strings.Cut(l.ImportPath, " ")
		folders[name] = l.Dir
		list = append(list, l)
	}
	if err := c.Wait(); err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	g := graph{}
	for _, l := range list {
		p := g[l.Dir]
		if p == nil {
			p = &pkg{made: map[string]bool{l.Dir: true}, product: l.Module.Dir == top}
			g[l.Dir] = p
		}
		p.elsewhere = p.elsewhere || len(l.IgnoredGoFiles) > 0
		for _, name := range l.Deps {
			name, _, _ = strings.Cut(name, " ")
			if dir, ok := folders[name]; ok {
				p.made[dir] = true
			}
		}
	}
	return g, nil
}

// of returns the folder of the package that a file belongs to, "" for none.
func (g graph) of(file string) string {
	code := strings.HasSuffix(file, ".go")
	if !code && slices.ContainsFunc(slices.Concat(documents, page, python), func(p string) bool { return in(file, p) }) {
		return ""
	}
	dir := path.Dir(file)
	if data, _, ok := strings.Cut(file, "/testdata/"); ok {
		dir, code = data, false
	}
	for ; dir != "."; dir = path.Dir(dir) {
		if g[dir] != nil {
			return dir
		}
		if code {
			return "" // it is not of the package above
		}
	}
	if g["."] != nil && strings.HasSuffix(file, ".go") && path.Dir(file) == "." {
		return "."
	}
	return ""
}

// unknown returns a file that is nobody's.
func (g graph) unknown(files []string) string {
	for _, file := range files {
		if g.of(file) == "" && !slices.ContainsFunc(steps, func(s step) bool { return s.touched(file) }) {
			return file
		}
	}
	return ""
}

// decide returns the arguments of a step that the change can break, or why it is left out.
func (g graph) decide(s step, all bool, files []string) (args []string, reason string) {
	dirs := map[string]bool{}
	touched := false
	for _, file := range files {
		touched = touched || s.touched(file)
		if dir := g.of(file); dir != "" {
			dirs[dir] = true
		}
	}
	for _, pattern := range s.packages {
		if all {
			args = append(args, pattern)
		} else if reached := g.reached(dirs, pattern); s.takes == "reached" {
			args = append(args, reached...)
		} else if len(reached) > 0 {
			args = append(args, pattern)
		}
	}
	if !all && !touched && !s.always && len(args) == 0 {
		if of := slices.Concat(s.packages, s.paths); len(of) > 0 {
			return nil, "nothing has changed of " + strings.Join(of, ", ")
		}
		return nil, "no file has changed that can break everything"
	}
	switch {
	case s.takes == "":
		return nil, ""
	case s.takes == "touched" && !all:
		return g.touched(dirs), ""
	}
	slices.Sort(args)
	return slices.Compact(args), "" // a module may be in the folder of another one
}

func (s step) touched(file string) bool {
	return slices.ContainsFunc(s.paths, func(p string) bool { return in(file, p) })
}

func in(file, folder string) bool { return file == folder || strings.HasPrefix(file, folder+"/") }

// reached returns the packages of the pattern that are made of one that has changed.
func (g graph) reached(dirs map[string]bool, pattern string) (list []string) {
	for dir, p := range g {
		changed := func(d string) bool { return p.made[d] }
		if p.matches(pattern, dir) && slices.ContainsFunc(slices.Collect(maps.Keys(dirs)), changed) {
			list = append(list, argument(dir))
		}
	}
	slices.Sort(list)
	return list
}

// argument returns a package as the go command takes it.
func argument(dir string) string {
	if dir == "." {
		return dir
	}
	return "./" + dir
}

// matches is as the go command has it: ./... are the packages of the first module.
func (p *pkg) matches(pattern, dir string) bool {
	folder, below := strings.CutSuffix(pattern, "/...")
	switch folder = path.Clean(folder); {
	case !below:
		return folder == dir
	case folder == ".":
		return p.product
	}
	return in(dir, folder)
}

// touched returns the packages of the product that have changed, or all of the product where one of them has files for other systems:
// those may differ in what they export.
func (g graph) touched(dirs map[string]bool) (list []string) {
	for dir := range dirs {
		if !g[dir].product {
			continue
		}
		if g[dir].elsewhere {
			return []string{"./..."}
		}
		list = append(list, argument(dir))
	}
	slices.Sort(list)
	return list
}
