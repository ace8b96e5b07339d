//go:build unix

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"volley/coded/manifest"
	"volley/internal/exit"
)

// inTheWay are names of an output directory that something may lie under already.
var inTheWay = []string{"manifest.json", "manifest.copy.json", "coded.1", "coded.1.1", "packet.01", ".volley-lock", ".volley-left"}

// TestOutputLinks puts links in the place of what encode and decode write: what is behind them
// stays as it is. A directory that is a link is followed, as its user has named it.
func TestOutputLinks(t *testing.T) {
	t.Parallel()
	coded, in, packets := encoded(t, []int{9, 30, 0})
	link := func(to, name string) {
		must(t, os.Symlink(to, name))
	}
	for _, args := range [][]string{{"encode", in}, {"decode", coded}} {
		for _, name := range inTheWay {
			for _, there := range []bool{true, false} { // or it would be made
				dir := t.TempDir()
				outside, out := filepath.Join(dir, "outside"), filepath.Join(dir, "out")
				lay(t, filepath.Join(outside, "other"), nil, 0o666)
				lay(t, filepath.Join(out, "x"), nil, 0o666)
				if there {
					write(t, filepath.Join(outside, "secret"), "secret")
				}
				link(filepath.Join(outside, "secret"), filepath.Join(out, name))
				before := snapshot(t, outside)
				r := mustEnd(t, append(args, "--force", "-o", out)...)
				if now := snapshot(t, outside); !maps.Equal(now, before) {
					t.Errorf("%s over the link %s: exit %d, and behind it is %v", args[0], name, r.code, now)
				}
				if refused := name == ".volley-lock"; refused != (r.code != exit.OK) || refused && !strings.Contains(r.stderr, name) {
					t.Errorf("%s over the link %s: exit %d, %s", args[0], name, r.code, r.stderr)
				}
				for _, file := range listDir(t, out) {
					if info, err := os.Lstat(filepath.Join(out, file)); err == nil && r.code == exit.OK && !strings.HasPrefix(file, ".volley-") && file != name && !info.Mode().IsRegular() {
						t.Errorf("%s: %s is %v", args[0], file, info.Mode())
					}
				}
			}
		}
	}
	dir := t.TempDir()
	lay(t, filepath.Join(dir, "real/x"), nil, 0o666)
	remove(t, dir, "real/x")
	link("real", filepath.Join(dir, "link"))
	link("other", filepath.Join(dir, "nowhere"))
	mustEnd(t, "decode", coded, "-o", filepath.Join(dir, "link")).is(t, exit.OK)
	checkDecoded(t, filepath.Join(dir, "real"), packets)
	if r := mustEnd(t, "decode", coded, "-o", filepath.Join(dir, "nowhere")); r.code == exit.OK {
		t.Errorf("a link to nothing became a directory")
	}
}

// TestSpecialFiles puts what is no file in the place of files that encode and decode read: they
// end at once and name it, or do without it.
func TestSpecialFiles(t *testing.T) {
	put := map[string]func(path string) error{
		"pipe":      func(path string) error { return syscall.Mkfifo(path, 0o666) },
		"directory": func(path string) error { return os.Mkdir(path, 0o777) },
		"device":    func(path string) error { return os.Symlink("/dev/zero", path) },
		"socket": func(path string) error {
			t.Chdir(filepath.Dir(path)) // its whole name may be too long
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Base(path), Net: "unix"})
			if err == nil {
				l.SetUnlinkOnClose(false)
				l.Close()
			}
			return err
		},
	}
	for what, make := range put {
		for _, name := range inTheWay {
			coded, in, packets := encoded(t, []int{9, 30, 0})
			for _, dir := range []string{coded, in} {
				if dir == in != strings.HasPrefix(name, "packet") {
					continue
				}
				os.Remove(filepath.Join(dir, name))
				must(t, make(filepath.Join(dir, name)))
			}
			back := filepath.Join(t.TempDir(), "back")
			r := soon(t, "decode", coded, "-o", back, filepath.Join(in, "packet.00"), filepath.Join(in, "packet.01"))
			switch {
			case r.code == exit.OK:
				checkDecoded(t, back, packets)
			case what != "directory" || name != "packet.01": // which is one without files
				t.Errorf("decode: %s for %s: exit %d, %s", what, name, r.code, r.stderr)
			}
			if r = soon(t, "encode", "--force", "-o", coded, filepath.Join(in, "packet.00"), filepath.Join(in, "packet.01")); r.code != exit.OK && !strings.Contains(r.stderr, name) {
				t.Errorf("encode: %s for %s: exit %d, %s", what, name, r.code, r.stderr)
			}
			if fine := strings.HasPrefix(name, "manifest") || strings.HasPrefix(name, "coded.1") || name == ".volley-left"; fine != (r.code == exit.OK) && what != "directory" {
				t.Errorf("encode: %s for %s: exit %d, %s", what, name, r.code, r.stderr)
			}
		}
		if r := soon(t, "matrix", "--matrix", "vandermonde", "-k", "2", "--points", "/dev/zero"); r.code != exit.Usage {
			t.Errorf("points: exit %d, %s", r.code, r.stderr)
		}
	}
}

// TestModes checks that coded files, the manifest and decoded files allow no more than all files
// that they come from, and that the umask has its say.
func TestModes(t *testing.T) {
	t.Parallel()
	defer syscall.Umask(syscall.Umask(0))
	for _, c := range []struct {
		umask int
		in    []fs.FileMode
		want  fs.FileMode
	}{
		{0o022, []fs.FileMode{0o644, 0o644, 0o644}, 0o644},
		{0, []fs.FileMode{0o666, 0o664, 0o646}, 0o644},
		{0o002, []fs.FileMode{0o664, 0o664, 0o600}, 0o600},
		{0o077, []fs.FileMode{0o644, 0o644, 0o644}, 0o600},
		{0, []fs.FileMode{0o640, 0o604, 0o644}, 0o600},
		{0, []fs.FileMode{0o755 | fs.ModeSetuid, 0o755 | fs.ModeSetgid, 0o755 | fs.ModeSticky}, 0o644},
		{0, []fs.FileMode{0o440, 0o444, 0o444}, 0o640},
	} {
		syscall.Umask(0)
		in, packets := writePackets(t, 9, 30, 0)
		for k, mode := range c.in {
			must(t, os.Chmod(filepath.Join(in, fmt.Sprintf("packet.%02d", k)), mode))
		}
		syscall.Umask(c.umask)
		coded, back := filepath.Join(t.TempDir(), "coded"), filepath.Join(t.TempDir(), "back")
		mustRun(t, "encode", "-o", coded, in)
		mustRun(t, "decode", "-o", back, coded)
		checkDecoded(t, back, packets)
		for _, dir := range []string{coded, back} {
			for _, name := range listDir(t, dir) {
				if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode() != c.want {
					t.Errorf("inputs %v, umask %03o: %s is %v, %v; want %v", c.in, c.umask, name, info.Mode(), err, c.want)
				}
			}
		}
		// One survivor that others may not read keeps all from them.
		must(t, os.Chmod(filepath.Join(in, "packet.01"), 0o600))
		mustRun(t, "decode", "-o", back+"2", coded, filepath.Join(in, "packet.01"))
		if info, err := os.Stat(filepath.Join(back+"2", "packet.00")); err != nil || info.Mode() != 0o600 {
			t.Errorf("decoded with a survivor of mode 0600: %v, %v", info.Mode(), err)
		}
	}
}

// TestModesOfGroups encodes a file that another group than the caller's may read: the caller's
// may not read what is coded of it.
func TestModesOfGroups(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root gives files to any group")
	}
	in, _ := writePackets(t, 9, 30, 1)
	path := filepath.Join(in, "packet.01")
	must(t, errors.Join(os.Chown(path, -1, 4711), os.Chmod(path, 0o640)))
	coded := filepath.Join(t.TempDir(), "coded")
	mustRun(t, "encode", "-o", coded, in)
	for _, name := range listDir(t, coded) {
		if info, err := os.Lstat(filepath.Join(coded, name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s is %v, %v", name, info.Mode(), err)
		}
	}
}

// TestManifestNumbers says in manifests that there is much more than there is: that is refused
// before memory is asked for.
func TestManifestNumbers(t *testing.T) {
	for name, edit := range map[string]func(m *manifest.Manifest){
		"processors":      func(m *manifest.Manifest) { m.Processors = 1 << 30 },
		"sinks":           func(m *manifest.Manifest) { m.Sinks = 1 << 30 },
		"both, and bytes": func(m *manifest.Manifest) { m.Processors, m.Sinks, m.Files[0].Bytes = 1<<30, 1<<30, 1<<50 },
		"symbols_per_packet": func(m *manifest.Manifest) {
			m.SymbolsPerPacket = 1 << 40
			for k := range m.Files {
				m.Files[k].Bytes = 1 << 40
			}
		},
	} {
		for _, family := range []string{"random:1", "cauchy"} {
			coded, in, _ := encoded(t, []int{9, 30}, "--field", "2147483647", "--matrix", family)
			editManifest(t, coded, edit)
			r := soon(t, "decode", "-o", filepath.Join(t.TempDir(), "back"), coded, in)
			if r.code != exit.Usage || strings.Contains(name, "_") && !strings.Contains(r.stderr, name) {
				t.Errorf("%s: exit %d, %s", name, r.code, r.stderr)
			}
		}
	}
}

// TestTerminal gives inputs names that a terminal would obey: messages are without them.
func TestTerminal(t *testing.T) {
	t.Parallel()
	coded, _, _ := encoded(t, []int{9, 30})
	editManifest(t, coded, func(m *manifest.Manifest) { m.Inputs[0].Name = "a\x1b[2J\rb\xff" })
	remove(t, coded, "coded.0")
	wants(t, refused(t, exit.Usage, coded), `Unknown inputs: a\x1b[2J\rb\xff`)
}
