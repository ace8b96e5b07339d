package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"volley/internal/cli/session"
	"volley/internal/exit"
	"volley/internal/groupfile"
)

// writeGroup writes a group file with the domains of directories, and options.
func writeGroup(t *testing.T, dirs, domains []string, options ...string) string {
	t.Helper()
	text := strings.Join(append(options, "members:\n"), "\n")
	for i, dir := range dirs {
		text += fmt.Sprintf("  - dir: %s\n", dir)
		if domains != nil {
			text += fmt.Sprintf("    domain: %s\n", domains[i])
		}
	}
	name := filepath.Join(t.TempDir(), "group.yaml")
	must(t, errors.Join(os.WriteFile(name, []byte(text), 0o600), os.Chmod(filepath.Dir(name), 0o700)))
	return name
}

// TestGroupFileOfOthers refuses a group file that others can change or replace: its ssh would be run. All may read it.
func TestGroupFileOfOthers(t *testing.T) {
	t.Parallel()
	const sticky = 0o777 | os.ModeSticky
	for _, c := range []struct {
		file, dir   os.FileMode
		link        bool // in a directory that is the caller's alone
		of, ofDir   int  // another owner, if this is root
		want, owned string
	}{
		{file: 0o644, dir: 0o755},
		{file: 0o644, dir: sticky},
		{file: 0o664, dir: 0o755, want: "has mode 0664, with which others can change it: chmod go-w "},
		{file: 0o602, dir: 0o755, want: "has mode 0602"},
		{file: 0o600, dir: 0o775, want: "has mode 0775, with which others can replace "},
		{file: 0o600, dir: 0o777, link: true, want: "has mode 0777, with which others can replace "},
		{file: 0o644, dir: 0o755, of: 12345, owned: "is user 12345's, who can change it: give a file of your own"},
		{file: 0o644, dir: 0o755, ofDir: 12345, owned: "is user 12345's, who can change it: give a directory of your own"},
		{file: 0o644, dir: sticky, ofDir: 12345, owned: "give a directory of your own"},
	} {
		mark := filepath.Join(t.TempDir(), "mark")
		name := writeGroup(t, []string{"a:/x", "b:/x"}, nil, "tolerate: 1", fmt.Sprintf("ssh: sh -c 'touch %s'", mark))
		err := errors.Join(os.Chmod(name, c.file), os.Chmod(filepath.Dir(name), c.dir))
		if c.owned != "" && os.Geteuid() == 0 {
			c.want = c.owned
			err = errors.Join(err, os.Chown(name, c.of, -1), os.Chown(filepath.Dir(name), c.ofDir, -1))
		}
		if c.link {
			link := filepath.Join(t.TempDir(), "link")
			err = errors.Join(err, os.Chmod(filepath.Dir(link), 0o700), os.Symlink(name, link))
			name = link
		}
		must(t, err)
		r := volleyRun("status", "--group", name)
		_, err = os.Stat(mark)
		if ran := err == nil; ran != (c.want == "") || c.want != "" && (r.code != exit.Usage || !strings.Contains(r.stderr, c.want)) {
			t.Errorf("%+v: the program was run: %v, %+v", c, ran, r)
		}
	}
}

// TestGroupFile runs all verbs by a group file, also after a loss, with one line changed, and by a process for each
// member.
func TestGroupFile(t *testing.T) {
	dirs := writeNodes(t, 4, 20_000)
	before := contents(t, dirs)
	file := writeGroup(t, dirs, nil, "tolerate: 2", "digest: xxh3")
	by := " --group " + file
	expect(t, exit.OK, "protect"+by, nil, "4 nodes, any 2 may be lost", "protected, generation 1")
	expect(t, exit.OK, "verify"+by, nil, "whole: 4 nodes, any 2 may be lost, generation 1, compared by xxh3\n")
	removeAll(t, dirs[1], dirs[3])
	expect(t, exit.Wrong, "status"+by, nil, "node 1  lost  "+dirs[1])
	elsewhere := filepath.Join(t.TempDir(), "new")
	replaceIn(t, file, dirs[1], elsewhere)
	dirs[1] = elsewhere
	expect(t, exit.OK, "recover"+by, nil, "recovered node 1: 4 files", "recovered node 3: ")
	have(t, dirs, before)
	expect(t, exit.OK, "protect --tolerate 1"+by, nil, "any 1 may be lost") // the command line has the last word
	expect(t, exit.Usage, "verify"+by, dirs[:1], "leave "+dirs[0]+" out")
	expect(t, exit.OK, "protect --dry-run"+by, nil, "any 2 may be lost")
	for ranks, code := range map[int]int{4: exit.OK, 3: exit.Usage} {
		codes, text := newRanks(t, ranks, nil, "verify", "--group", file, "--group-size", "4").do()
		if !allAre(codes, code) || strings.Contains(text, "as many as there are processes") != (code == exit.Usage) {
			t.Errorf("%d processes: %v, %s", ranks, codes, text)
		}
	}
}

// nextCommand matches a command that a report or an error names.
var nextCommand = regexp.MustCompile(`(?m)volley ((?:protect|recover|resize|status|verify) .*?)(?: brings .*)?$`)

// next returns the words of the last command that a text names, as a shell reads them.
func next(t *testing.T, text string) []string {
	t.Helper()
	found := nextCommand.FindAllStringSubmatch(text, -1)
	if found == nil {
		t.Fatalf("%s: no next command", text)
	}
	words, err := exec.Command("sh", "-c", `printf '%s\n' `+found[len(found)-1][1]).Output()
	must(t, err)
	return strings.Split(strings.TrimSuffix(string(words), "\n"), "\n")
}

// TestNext runs what status names next in each state, as it is printed, until all is well.
func TestNext(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 4, 20_000)
	for n := range 8 {
		lay(t, filepath.Join(dirs[2], fmt.Sprint("doc", n)), []byte("text"), 0o644)
	}
	key := filepath.Join(t.TempDir(), "the key")
	lay(t, key, bytes.Repeat([]byte("k"), 16), 0o600)
	before := contents(t, dirs)
	file := []string{"--group", writeGroup(t, dirs, nil, "tolerate: 1", "key: "+key)}
	listed := append([]string{"--key", key}, dirs...)
	for _, state := range []struct {
		verb string
		do   func()
	}{
		{"protect", func() {}},
		{"recover", func() { removeAll(t, dirs[1]) }},
		{"recover", func() {
			for n := range 8 {
				lay(t, filepath.Join(dirs[2], fmt.Sprint("doc", n)), []byte("locked"), 0o644)
			}
		}},
		{"protect", func() { lay(t, filepath.Join(dirs[2], "doc0"), []byte("other"), 0o644) }},
	} {
		state.do()
		for _, by := range [][]string{listed, file} {
			r := volleyRun(append([]string{"status"}, by...)...)
			if words := next(t, r.stdout+r.stderr); words[0] != state.verb {
				t.Errorf("%v: %+v", words, r)
			} else if slices.Equal(by, file) {
				volleyRun(words...).is(t, exit.OK)
			} else if !slices.Contains(words, "R") {
				volleyRun(append(words, "--dry-run")...).is(t, exit.OK)
			}
		}
		volleyRun(append([]string{"status"}, file...)...).is(t, exit.OK)
	}
	before[2] = contents(t, dirs)[2]
	have(t, dirs, before)
}

// TestGroupFileErrors names the file, the line and the member.
func TestGroupFileErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "group.yaml")
	for text, want := range map[string]string{
		"":           "group.yaml:1: nothing in it",
		"members: x": "group.yaml:1: members: want a list",
		"members: {": "line 1: did not find expected node content",
		"[a]":        "group.yaml:1: the file: want lines KEY: VALUE",
		"tolerat: 2": "group.yaml:1: tolerat: want members, or one of tolerate, ",
		"tolerate: 2\ntolerate: 3\nmembers: [dir: a, dir: b]": "group.yaml:2: tolerate: it is there twice",
		"members: [dir: a, dir: b]\n---\ntolerate: 1":         "group.yaml:2: --- begins another document",
		"members: [dir: a]":                                        "group.yaml:1: members: 1: a group has 2 or more",
		"members:\n- dir: a\n- dir: ./a\n":                         "group.yaml:3: member 1: " + dir + "/a is in line 2, too",
		"members:\n- dir: a\n- dir: b\n  rack: 1\n":                "group.yaml:4: member 1: rack: want dir: DIR, domain",
		"members:\n- dir: a\n- domain: b\n":                        "group.yaml:3: member 1: want dir: DIR",
		"members:\n- dir: a\n  domain: x\n- dir: b\n- dir: c\n":    "group.yaml:4: member 1: some members have a domain",
		"members:\n- dir: a\n- dir: b\n  domain: x\n- dir: c\n":    "group.yaml:3: member 1: some members have a domain",
		"members:\n- dir: a\n- dir: '-h:/b'\n":                     `group.yaml:3: member 1: "-h:/b": "-h" is no host`,
		"\ntolerate: many\nmembers: [dir: a, dir: b]":              `group.yaml:2: --tolerate "many": want a whole number`,
		"tolerate: 1\nport: 70000\nmembers: [dir: a, dir: b]":      `group.yaml:2: --port: ports "70000": want a range such as 7000-7063`,
		"tolerate: [1, 2]\nmembers: [dir: a, dir: b]":              "group.yaml:1: tolerate: want a value",
		"key: group.key\nmembers: [dir: a, dir: b]":                `group.yaml:1: key: "group.key": want an absolute path`,
		"a: &x {b: 1}\nmembers: [dir: *x]":                         "group.yaml:1: a: want members",
		"members: [&x {dir: a}, *x]":                               "group.yaml:1: member 1: want lines KEY: VALUE",
		"members: [dir: !!binary '?', dir: b]":                     "group.yaml:1: member 0: dir: want dir: DIR",
		"members: []\n" + strings.Repeat("#", groupfile.MostBytes): "longer than",
	} {
		rewrite(t, file, []byte(text))
		expect(t, exit.Usage, "protect --group "+file, nil, want)
	}
	shell(t, `mkfifo "$1"`, filepath.Join(dir, "pipe")) // which nobody writes
	for words, want := range map[string]string{
		"status --group " + dir + "/pipe": "is a named pipe",
		"status --group " + dir:           "is a directory",
		"status --group /dev/null":        "is a device",
	} {
		expect(t, exit.Usage, words, nil, want)
	}
	several := session.New()
	several.Environ = append(several.Environ, "SLURM_STEP_NUM_TASKS=4")
	resultIn(t.Context(), several, "status", "--group", writeGroup(t, []string{"a:/x", "b:/x"}, nil)).is(t, exit.Usage, "run volley once")
	protect, _, _ := newCommand(session.New()).Find([]string{"protect"})
	for _, key := range groupfile.Keys {
		if protect.Flags().Lookup(key) == nil {
			t.Errorf("protect has no flag %s", key)
		}
	}
}

// TestGroupFileNames has names of any bytes, in YAML.
func TestGroupFileNames(t *testing.T) {
	t.Parallel()
	base, file := t.TempDir(), writeGroup(t, nil, nil)
	var dirs []string
	var members []map[string]string
	for _, name := range []string{"\xff\xfe", "a\nb", "- 'x': \"#", "1e3", "null"} {
		dirs = append(dirs, filepath.Join(base, name))
		if err := os.Mkdir(dirs[len(dirs)-1], 0o700); err != nil {
			t.Skipf("the file system refuses %q: %v", name, err)
		}
		members = append(members, map[string]string{"dir": dirs[len(dirs)-1]})
	}
	text, err := yaml.Marshal(map[string]any{"tolerate": 1, "exclude": "\xffx", "members": members})
	must(t, err)
	rewrite(t, file, text)
	if g, err := groupfile.Read(file); err != nil || !slices.Equal(g.Dirs, dirs) || !slices.Equal(g.Flags["exclude"], []string{"\xffx"}) {
		t.Fatalf("%+v, %v: %s", g, err, readFile(t, file))
	}
	expect(t, exit.OK, "protect --group "+file, nil)
	expect(t, exit.OK, "resize --group "+file+" --remove", dirs[4:])
}

// TestEmptyNames gives verbs of groups an empty name in place of a directory or file: nothing is done.
func TestEmptyNames(t *testing.T) {
	dirs := writeNodes(t, 3, 100)
	t.Chdir(t.TempDir()) // no node, and none to become one
	for _, words := range []string{
		"protect --tolerate 1", "status", "recover", "resize --add", "resize --remove", "recover --to", "protect --tolerate 1 --key", "verify --group",
	} {
		expect(t, exit.Usage, words, append([]string{""}, dirs...), "has an empty name: is a variable not set?")
	}
	bare(t, append(dirs, ".")...)
}

// replaceIn replaces a word of a file.
func replaceIn(t *testing.T, file, old, by string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), old) {
		t.Fatalf("%s: %v, no %q in it", file, err, old)
	}
	rewrite(t, file, []byte(strings.Replace(string(text), old, by, 1)))
}
