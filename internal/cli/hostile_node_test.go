//go:build linux

package cli

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"volley/internal/exit"
)

var hostileNodes = flag.Int("hostile.nodes", 30, "nodes that TestHostileNode damages")

const manifestName = "manifest.json"

// seal writes a file that ends with a line which tells of damage.
func (h *hostile) seal(name string, document any) {
	text, err := json.Marshal(document)
	if err != nil {
		h.t.Fatal(err)
	}
	path := filepath.Join(h.dir, name)
	os.RemoveAll(path)
	os.WriteFile(path, fmt.Appendf(text, "\n{\"sha256\":\"%x\"}\n", sha256.Sum256(text)), 0o600)
}

func (h *hostile) read(name string) (document map[string]any) {
	text, _, _ := strings.Cut(string(contentOf(filepath.Join(h.dir, name))), "\n")
	if json.Unmarshal([]byte(text), &document) != nil {
		return nil
	}
	return document
}

// unpacked returns the text of a record, or nothing.
func unpacked(stored []byte) []byte {
	packed, err := base64.StdEncoding.AppendDecode(nil, stored)
	if err != nil {
		return nil
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil
	}
	text, _ := io.ReadAll(z)
	return text
}

// forge changes a manifest or a record, so that what it has of digests is right, and gives the
// generation another number at times.
func (h *hostile) forgeNode() {
	const of = ".volley/generation.2/"
	if !within(filepath.Join(h.dir, of, manifestName)) {
		return
	}
	if h.IntN(6) == 0 {
		if id := h.read(of + "node.json"); id != nil && h.change(id) {
			h.seal(of+"node.json", id)
		}
		return
	}
	m := h.read(of + manifestName)
	if m == nil {
		return
	}
	if records, ok := m["members"].([]any); ok && h.IntN(2) == 0 {
		put := func(name string, text []byte) string {
			path := filepath.Join(h.dir, of, name)
			os.RemoveAll(path)
			os.WriteFile(path, text, 0o600)
			is := sha256.Sum256(text)
			return hex.EncodeToString(is[:])
		}
		node, name := 1, "record"
		if h.IntN(4) == 0 { // the copy of another's
			node = []int{0, 2, 3}[h.IntN(3)]
			name = fmt.Sprint("record.", node)
		}
		record, entries := map[string]any{}, []any{}
		lines := json.NewDecoder(bytes.NewReader(unpacked(contentOf(filepath.Join(h.dir, of, name)))))
		whole := lines.Decode(&record) == nil
		for lines.More() && whole {
			entries = append(entries, nil)
			whole = lines.Decode(&entries[len(entries)-1]) == nil
		}
		record["entries"] = entries
		switch list, ok := records[min(node, len(records)-1)].(map[string]any); {
		case !ok:
		case h.IntN(8) == 0:
			list["sha256"] = put(name, []byte("AAAA"))
		case whole && h.change(record):
			entries, _ = record["entries"].([]any)
			delete(record, "entries")
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			text := json.NewEncoder(z)
			for _, line := range slices.Concat([]any{record}, entries) {
				if err := text.Encode(line); err != nil {
					h.t.Fatal(err)
				}
			}
			z.Close()
			list["bytes"], list["sha256"] = b.Len(), put(name, base64.StdEncoding.AppendEncode(nil, b.Bytes()))
		}
	} else {
		h.change(m)
	}
	g := 2
	if h.IntN(2) == 0 {
		g = []int{1, 3, 100, 1 << 30}[h.IntN(4)]
		m["generation"] = g
	}
	h.seal(of+manifestName, m)
	name := fmt.Sprintf("%s.%d", []string{"generation", "generation", "pending"}[h.IntN(3)], g)
	os.Rename(filepath.Join(h.dir, of), filepath.Join(h.dir, ".volley", name))
}

// TestHostileNode lets one node of a group do anything, and the others verify and recover: nothing is
// written outside the nodes, or at another node, and it ends, in little memory.
func TestHostileNode(t *testing.T) {
	m := misuse(t, 4, 3_000)
	m.shell("echo tool > n1/tool; chmod 4755 n1/tool; ln -s ckpt n1/link; ln n1/ckpt n1/again; mkdir n1/void")
	m.protect()
	m.shell("echo more >> n1/sub/b; echo more >> n2/ckpt")
	m.protect("generation 2")
	elsewhere := filepath.Join(m.base, "elsewhere")
	m.must(os.Mkdir(elsewhere, 0o755))
	m.must(os.WriteFile(filepath.Join(elsewhere, "secret"), []byte("nobody else's"), 0o640))
	m.shell("mv n1 kept")
	if real, err := filepath.EvalSymlinks(m.base); err != nil || real != m.base {
		t.Skip("the directory for tests is a symbolic link")
	}
	honest := func() map[string]string {
		all := map[string]string{"names": strings.Join(slices.DeleteFunc(listDir(t, m.base), func(name string) bool { return name == "node.1" }), " ")}
		for _, dir := range []string{m.dirs[0], m.dirs[2], m.dirs[3], elsewhere} {
			for name, is := range snapshot(t, dir) {
				if name = filepath.Join(filepath.Base(dir), name); filepath.Base(name) != "lock" && !strings.Contains(name, ".volley/scrub") {
					all[name] = is
				}
			}
		}
		return all
	}
	before := honest()
	t.Cleanup(func() { m.shell("find n1 -type d -exec chmod u+rwx {} \\; || true") })
	codes := map[int]int{}
	for seed := *hostileSeed; seed < *hostileSeed+uint64(*hostileNodes) && !t.Failed(); seed++ {
		m.shell("find n1 -type d -exec chmod u+rwx {} \\; || true; rm -rf n1; cp -a kept n1") // directories may be closed, too
		h := &hostile{Rand: rand.New(rand.NewPCG(seed, 2)), t: t, dir: m.dirs[1], hole: 1 << 39, names: []string{".volley/lock", ".volley/pending.3", ".volley/tmp-0", ".volley/tmp-generation.1", ".volley/tmp-stage", ".volley/replaced"}}
		h.forge, h.targets = h.forgeNode, []string{"/dev/zero", elsewhere + "/secret", elsewhere, "nowhere", "..", ".", "sub"}
		for _, name := range []string{"", "/ckpt", "/.volley", "/.volley/generation.2", "/.volley/generation.2/parity"} {
			h.targets = append(h.targets, m.dirs[2]+name)
		}
		for range 1 + h.IntN(4) {
			h.attack()
		}
		recovers := [][]string{{"recover"}, {"recover", "--revert", "changed"}}[h.IntN(2)]
		for _, args := range [][]string{{"verify"}, {"recover", "--dry-run"}, recovers} {
			r := soonOf(t, 256<<10, slices.Concat(args, []string{"--memory", "1MiB"}, m.dirs)...)
			codes[r.code]++
			fail := func(format string, a ...any) {
				t.Helper()
				t.Errorf("-hostile.seed %d -hostile.nodes 1: %q, %v: exit %d: %s%s\n%s", seed, h.did, args, r.code, r.stdout, r.stderr, fmt.Sprintf(format, a...))
			}
			if r.code < 0 || r.code > exit.Wrong {
				fail("no such code")
			}
			if regexp.MustCompile(`[^\n\t -~\x{80}-\x{10ffff}]`).MatchString(r.stdout + r.stderr) {
				fail("it writes control characters")
			}
			if now := honest(); !maps.Equal(now, before) {
				for name, is := range now {
					if before[name] != is {
						t.Logf("%s is %s and was %s", name, is, before[name])
					}
				}
				fail("something else than the node has changed")
			}
		}
	}
	t.Logf("exit codes %v", codes)
}
