package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	codedpkg "volley/coded"
	"volley/coded/manifest"
	"volley/files"
	"volley/internal/exit"
)

// encoded encodes files of the given sizes and returns the directory of coded
// files, that of the inputs, and their contents.
func encoded(t *testing.T, sizes []int, flags ...string) (dir, in string, packets [][]byte) {
	t.Helper()
	in, packets = writePackets(t, sizes...)
	write(t, filepath.Join(in, ".hidden"), "x") // which is no packet, nor is a directory
	must(t, os.MkdirAll(filepath.Join(in, "sub"), 0o777))
	dir = filepath.Join(t.TempDir(), "coded")
	mustRun(t, append(append([]string{"encode", "-o", dir}, flags...), in)...)
	return dir, in, packets
}

// checkDecoded checks that a directory holds the packets, and nothing else.
func checkDecoded(t *testing.T, dir string, packets [][]byte) {
	t.Helper()
	for k, want := range packets {
		if got := readFile(t, dir, fmt.Sprintf("packet.%02d", k)); !bytes.Equal(got, want) {
			t.Errorf("input %d of %d bytes comes back as %d others", k, len(want), len(got))
		}
	}
	if got := listDir(t, dir); len(got) != len(packets) {
		t.Errorf("the directory holds %v", got)
	}
}

// editManifest changes the manifest of a directory.
func editManifest(t *testing.T, dir string, edit func(m *manifest.Manifest)) {
	t.Helper()
	path := filepath.Join(dir, manifest.FileName)
	m, err := codedpkg.ReadManifest(path)
	must(t, err)
	edit(m)
	m.SHA256 = "" // as manifests were once
	os.Remove(filepath.Join(dir, manifest.CopyName))
	data, err := json.Marshal(m)
	must(t, err)
	write(t, path, string(data))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o666))
}

func remove(t *testing.T, path ...string) {
	t.Helper()
	must(t, os.Remove(filepath.Join(path...)))
}

// refused runs decode into a directory that must not come to be and returns what
// it says: one line, and one for each coded file that is left out.
func refused(t *testing.T, code int, args ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "back")
	r := volleyRun(append([]string{"decode", "-o", out}, args...)...)
	notes := strings.Count(r.stderr, " is left out: ")
	if r.code != code || strings.Count(r.stderr, "\n") != notes+1 || r.stdout != "" {
		t.Errorf("decode %v: exit %d, want %d: %s%s", args, r.code, code, r.stderr, r.stdout)
	}
	if _, err := os.Lstat(out); err == nil {
		t.Errorf("decode %v: the directory was made, with %v in it", args, listDir(t, out))
	}
	return r.stderr
}

func wants(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Errorf("%q has no %q", got, part)
		}
	}
}

// backFrom decodes packets into a directory of its own, which it returns with what is printed. Nil: it is not looked at.
func backFrom(t *testing.T, packets [][]byte, args ...string) (back string, r result) {
	t.Helper()
	back = filepath.Join(t.TempDir(), "back")
	r = volleyRun(append([]string{"decode", "-o", back}, args...)...)
	if r.code != exit.OK {
		t.Fatalf("decode %v: exit %d: %s", args, r.code, r.stderr)
	}
	if packets != nil {
		checkDecoded(t, back, packets)
	}
	return back, r
}

// TestDecodeWays decodes what was encoded by every kind of matrix and field, in pieces, in many segments, in another order of columns, and for more or fewer
// sinks than sources. The manifest is enough for the structure of a matrix: to decode takes the algorithm that it took to
// encode.
func TestDecodeWays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	table, points := filepath.Join(dir, "A.csv"), filepath.Join(dir, "points")
	write(t, points, "1 5 2 7 3 4 6 8 9 10 11 12 13 14 15 16")
	write(t, table, mustRun(t, "matrix", "-k", "16", "--field", "257", "--matrix", "random:9"))
	for _, c := range []struct {
		encode, decode string
		survivors      int
		want           string
	}{
		{"--field 257 --matrix file:" + table, "", 0, `"inverse(dense:`},
		{"--field 97 --matrix lagrange --omega codes --alpha codes", "", 0, `"97"`},
		{"--field 2^4 --matrix lch", "", 0, `"2^4"`},
		{"--field 17 --matrix vandermonde --points powers", "", 0, `"17"`},
		{"--field babybear --matrix vandermonde --inverse --points " + points, "", 0, ""},
		{"--field 257 --matrix dft --order reversed", "", 0, ""},
		{"--field 2^16 --matrix fti", "--model paper -p 2", 2, ""},
		{"--matrix rs:cauchy", "", 2, ""},
		{"--algorithm exchange", "", 0, ""},
		{"--network wan --algorithm exchange:4,4 --field 257", "", 0, ""},
		{"--field 257 --matrix dft --order any --model paper --beta 0", "", 0, ""},
		{"--field 257 --matrix dft --order any --model paper --beta 0 --inverse", "", 0, ""},
		{"--field 257 --matrix dft", "", 0, `"dft"`},
		{"--field 257 --matrix dft --inverse", "", 0, `"dft"`},
		{"--field babybear --matrix vandermonde", "", 0, `"draw-and-loose"`},
		{"--field 2147483647 --matrix random:5", "", 0, ""},
		{"--field 2^12 --matrix vandermonde", "", 0, ""},
		{"--field 65537 --matrix vandermonde", "", 1, ""},
		{"--matrix cauchy --inverse", "", 0, `"cauchy"`},
		{"--sinks 24", "", 0, ""},
		{"--sinks 16 --separate --field babybear", "", 0, ""},
		{"--sinks 15 --matrix rs:vandermonde", "", 1, ""},
		{"--sinks 1 --separate --model paper --beta 0", "", 15, ""},
		{"--symbols --field 2^16", "", 1, `"field": "2^16"`},
		{"--memory 1MiB", "--memory 64KiB --network wan", 2, `"segments"`},
		{"--field koalabear", "--memory 64KiB --model paper -p 2", 0, `"koalabear"`},
		{"", "--algorithm bruck-allgather --check off --model paper --beta 1s --tau 1ns --timeout 1m", 2, `"verified": false`},
	} {
		t.Run(c.encode+c.decode, func(t *testing.T) {
			coded, in, packets := encoded(t, append(slices.Repeat([]int{1000}, 13), 70_000, 0, 2), strings.Fields(c.encode)...)
			args := append(strings.Fields(c.decode), "--json", coded)
			for k := range c.survivors {
				args = append(args, filepath.Join(in, fmt.Sprintf("packet.%02d", k)))
			}
			_, r := backFrom(t, packets, args...)
			wants(t, r.stdout, cmp.Or(c.want, `"verified": true`))
		})
	}
}

// TestDecodeSubsets takes any inputs and any coded files of a Cauchy code: as many as there were
// are enough, and less are refused with the names of what is unknown.
func TestDecodeSubsets(t *testing.T) {
	t.Parallel()
	const k = 3
	for set := range 1 << (2 * k) {
		coded, in, packets := encoded(t, []int{5, 0, 30})
		args := []string{coded}
		lost, missing := []string{}, 0
		for j := range k {
			if set>>j&1 == 0 {
				remove(t, coded, manifest.CodedName(j, k, 0))
				missing++
			}
			if name := filepath.Join(in, fmt.Sprintf("packet.%02d", j)); set>>(k+j)&1 == 1 {
				args = append(args, name)
			} else {
				lost = append(lost, name)
			}
		}
		if need := k - bits.OnesCount(uint(set)); need > 0 {
			wants(t, refused(t, exit.Usage, args...), append(lost, fmt.Sprintf("needed. Unknown inputs: %s", lost[0]), fmt.Sprintf("%d more", need), "(missing)")...)
			continue
		}
		_, r := backFrom(t, packets, args...)
		if strings.Count(r.stderr, "is left out: missing") != missing {
			t.Errorf("%d coded files are missing: %s", missing, r.stderr)
		}
	}
}

// TestDecodeByRank decodes by matrices of which some coded packets tell nothing.
func TestDecodeByRank(t *testing.T) {
	t.Parallel()
	a := filepath.Join(t.TempDir(), "A.csv")
	write(t, a, "1,2,0,0\n1,2,0,1\n0,0,0,1\n5,10,0,7\n") // columns 1 and 2 tell nothing new; modulo 257
	coded, in, packets := encoded(t, []int{20, 10, 30, 7}, "--field", "257", "--matrix", "file:"+a)
	remove(t, a) // the manifest has the entries
	name := func(k int) string { return filepath.Join(in, fmt.Sprintf("packet.%02d", k)) }
	wants(t, refused(t, exit.Usage, coded), "2 more inputs or coded files are needed", name(0), name(3), "no more than 2 of them", "file:")
	wants(t, refused(t, exit.Usage, coded, name(0)), "1 more input or coded file is needed", name(1), name(2), name(3))
	for _, known := range [][]int{{0, 1}, {0, 2}, {3, 0}, {1, 2, 3}} {
		args := []string{coded}
		for _, k := range known {
			args = append(args, name(k))
		}
		backFrom(t, packets, args...)
	}

	// A column that is not needed may be damaged, and one that another can stand for. Nor is one needed that cannot be
	// read, be it what it may.
	write(t, filepath.Join(coded, "coded.2"), strings.Repeat("x", 60))
	if _, r := backFrom(t, packets, coded, name(0), name(1)); r.stderr != "" {
		t.Errorf("%s", r.stderr)
	}
	write(t, filepath.Join(coded, "coded.0"), strings.Repeat("x", 60))
	_, r := backFrom(t, packets, coded, name(0), name(1))
	if r.stderr != fmt.Sprintf("volley: %s/coded.0 is left out: damaged: another SHA-256\n", coded) {
		t.Errorf("%s", r.stderr)
	}
	remove(t, coded, "coded.0")
	must(t, os.Mkdir(filepath.Join(coded, "coded.0"), 0o777))
	_, r = backFrom(t, packets, coded, name(0), name(1))
	wants(t, r.stderr, "coded.0 is left out: not a regular file")

	// All inputs need no matrix.
	back, r := backFrom(t, packets, coded, in)
	wants(t, r.stdout, "4 inputs, which all survive, in "+back)
}

// TestDecodeSwapped swaps the names of two coded files: decode says which they are, and calls none damaged.
func TestDecodeSwapped(t *testing.T) {
	t.Parallel()
	coded, _, _ := encoded(t, []int{50, 60, 70})
	zero, one := filepath.Join(coded, "coded.0"), filepath.Join(coded, "coded.1")
	must(t, errors.Join(os.Rename(zero, zero+"x"), os.Rename(one, zero), os.Rename(zero+"x", one)))
	wants(t, refused(t, exit.Usage, coded), "2 more", "coded.0 (it is coded.1: give it that name), coded.1 (it is coded.0: give it that name)")
}

// TestDecodeSurvivors gives survivors in odd ways: two are equal, two are empty, and names are others.
func TestDecodeSurvivors(t *testing.T) {
	t.Parallel()
	in, packets := writePackets(t, 9, 0, 12, 0, 8, 8)
	write(t, filepath.Join(in, "packet.05"), string(packets[4]))
	packets[5] = packets[4]
	coded := filepath.Join(t.TempDir(), "coded")
	mustRun(t, "encode", "-o", coded, "--field", "2^16", in)
	for j := range 3 {
		remove(t, coded, manifest.CodedName(j, 6, 0))
	}
	odd := t.TempDir()
	for name, text := range map[string]string{"of node five": string(packets[5]), "x": "", ".hidden": "none of the inputs"} {
		write(t, filepath.Join(odd, name), text)
	}
	back, r := backFrom(t, packets, coded, odd, filepath.Join(odd, "x"))
	wants(t, r.stdout, "6 inputs, of which 2 lost and decoded from coded.3, coded.4, in "+back)

	none := filepath.Join(odd, "packet.02")
	write(t, none, "shorter")
	_, r = backFrom(t, packets, coded, odd, filepath.Join(odd, "x"))
	wants(t, r.stderr, "survivor "+none+" (7 bytes of SHA-256 13602ce54433…; ", "packet.02 had 12 of ", "is left out: it is no input of "+coded)
	for j := 3; j < 5; j++ {
		remove(t, coded, manifest.CodedName(j, 6, 0))
	}
	wants(t, refused(t, exit.Usage, coded, odd), "1 more input or coded file is needed", "Survivors left out, as no input: "+none+" (7 bytes")
	wants(t, refused(t, exit.Usage, coded, none, filepath.Join(odd, ".hidden")), "cannot use any survivor", "7 bytes", "18 bytes")
	wants(t, refused(t, exit.Usage, coded, filepath.Join(odd, "none")), "none: no such file")
	wants(t, refused(t, exit.Usage, coded, "/dev/null"), "not a regular file")
	wants(t, refused(t, exit.Usage, coded, t.TempDir()), "no packets")
}

// TestDecodeNames encodes inputs whose names cannot be those of the files of one directory.
func TestDecodeNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 255)
	for _, c := range []struct{ one, two, back string }{
		{"a/x", "b/x", ""}, {"..", "x", ""}, {"x", "/", ""}, {"", "x", ""}, {".volley-x", "x", ""}, {"a\x00b", "x", ""}, {long + "x", "y", ""},
		{"packet.00", "/../../" + long, "packet.00 " + long},
	} {
		coded, _, packets := encoded(t, []int{10, 20})
		editManifest(t, coded, func(m *manifest.Manifest) { m.Inputs[0].Name, m.Inputs[1].Name = files.Name(c.one), files.Name(c.two) })
		back, r := backFrom(t, nil, coded)
		want := cmp.Or(c.back, "input.0 input.1")
		if got := strings.Join(listDir(t, back), " "); got != want || !bytes.Equal(readFile(t, back, strings.Fields(want)[1]), packets[1]) {
			t.Errorf("%+v: %s", c, got)
		}
		if strings.Contains(r.stderr, "become input.0, input.1:") != (c.back == "") {
			t.Errorf("%+v: %s", c, r.stderr)
		}
	}
}

// TestDecodeOutput decodes into directories that are not empty.
func TestDecodeOutput(t *testing.T) {
	t.Parallel()
	coded, in, packets := encoded(t, []int{10, 20, 30})
	back := t.TempDir()
	for _, name := range []string{"packet.01", "theirs", ".volley-old"} {
		write(t, filepath.Join(back, name), "old")
	}
	wants(t, mustRun(t, "decode", "--force", "-o", back, coded), "\n3 inputs in "+back+"\n")
	equal(t, strings.Join(listDir(t, back), " "), "packet.00 packet.01 packet.02 theirs")
	remove(t, back, "theirs")
	checkDecoded(t, back, packets)

	// What is decoded from is not replaced, nor is a directory.
	editManifest(t, coded, func(m *manifest.Manifest) { m.Inputs[1].Name = "coded.2" })
	must(t, os.Mkdir(filepath.Join(back, "coded.2"), 0o777))
	for out, want := range map[string]string{coded: "is an input", back: "coded.2 is a directory", filepath.Join(in, "packet.00"): "packet.00"} {
		expect(t, exit.Usage, "decode --force -o "+out, []string{coded}, want)
	}
}

// TestDecodeWrong decodes with manifests that are well formed and lie: the result
// is not let through, with the exit code for that.
func TestDecodeWrong(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(m *manifest.Manifest){
		"seed":    func(m *manifest.Manifest) { m.Matrix.Family = "random:8" },
		"family":  func(m *manifest.Manifest) { m.Matrix.Family = "cauchy"; m.Matrix.Points = cauchyPoints },
		"inverse": func(m *manifest.Manifest) { m.Matrix.Inverse = true },
		"order": func(m *manifest.Manifest) {
			m.Inputs[0].SHA256, m.Inputs[1].SHA256 = m.Inputs[1].SHA256, m.Inputs[0].SHA256
		},
		"length": func(m *manifest.Manifest) { m.Inputs[2].Bytes-- },
		"sum":    func(m *manifest.Manifest) { m.Inputs[2].SHA256 = strings.Repeat("0", 64) },
	} {
		for _, field := range []string{"2^8", "257"} {
			coded, _, _ := encoded(t, []int{2000, 2000, 2000}, "--field", field, "--matrix", "random:7")
			editManifest(t, coded, edit)
			wants(t, refused(t, exit.Wrong, coded), "not what was encoded", map[bool]string{true: "packet.02: what is decoded is not"}[name == "length" || name == "sum"], "manifest")
		}
	}
}

var cauchyPoints = []manifest.PointList{{Name: "x", Values: []string{"0", "1", "2"}}, {Name: "y", Values: []string{"3", "4", "5"}}}

// TestDecodeManifest decodes with manifests that cannot be right: the message names the key.
func TestDecodeManifest(t *testing.T) {
	t.Parallel()
	for want, edit := range map[string]func(m *manifest.Manifest){
		"processors: 0":                 func(m *manifest.Manifest) { m.Processors = 0 },
		"files: 3 of them: want 4":      func(m *manifest.Manifest) { m.Processors = 4 },
		`"2^99"`:                        func(m *manifest.Manifest) { m.Field = "2^99" },
		"symbol_bytes: 2":               func(m *manifest.Manifest) { m.Field = "2^8" },
		"symbol_bytes: 0":               func(m *manifest.Manifest) { m.SymbolBytes = 0 },
		"bits_per_symbol: 7":            func(m *manifest.Manifest) { m.BitsPerSymbol = 7 },
		"symbols_per_packet: -1":        func(m *manifest.Manifest) { m.SymbolsPerPacket = -1 },
		"files[0].bytes: 60":            func(m *manifest.Manifest) { m.SymbolsPerPacket = 31 },
		"inputs[2].bytes: 31":           func(m *manifest.Manifest) { m.Inputs[2].Bytes = 31 },
		"inputs[2].bytes: 61":           func(m *manifest.Manifest) { m.Inputs[2].Bytes = 61 },
		"inputs[0].bytes: 15: a symbol": func(m *manifest.Manifest) { m.BitsPerSymbol, m.Inputs[0].Bytes = 0, 15 },
		`files[2].sha256: "73cb": want 64 lower-case hexadecimal digits`: func(m *manifest.Manifest) { m.Files[2].SHA256 = "73cb" },
		"inputs[1].sha256":                    func(m *manifest.Manifest) { m.Inputs[1].SHA256 = "00" },
		"files[1].processor: 2: want 1":       func(m *manifest.Manifest) { m.Files[1], m.Files[2] = m.Files[2], m.Files[1] },
		"files[1].name":                       func(m *manifest.Manifest) { m.Files[1].Name = "coded.0" },
		"inputs: 0 of them":                   func(m *manifest.Manifest) { m.Inputs = nil },
		`unknown matrix "magic"`:              func(m *manifest.Manifest) { m.Matrix.Family = "magic" },
		"without its points alpha":            func(m *manifest.Manifest) { m.Matrix.Points = nil },
		"matrix.points[0].values[1]: 257":     func(m *manifest.Manifest) { m.Matrix.Points[0].Values[1] = "257" },
		`matrix.points[0].values[2]: "x"`:     func(m *manifest.Manifest) { m.Matrix.Points[0].Values[2] = "x" },
		"matrix.points[0].values: the points": func(m *manifest.Manifest) { m.Matrix.Points[0].Values[2] = m.Matrix.Points[0].Values[0] },
		"2 points":                            func(m *manifest.Manifest) { m.Matrix.Points[0].Values = m.Matrix.Points[0].Values[1:] },
		"without its entries":                 func(m *manifest.Manifest) { m.Matrix.Family = "file:A.csv" },
		"matrix.entries[1][0]: -1":            func(m *manifest.Manifest) { m.Matrix.Entries = [][]string{{"1", "2"}, {"-1", "2"}} },
		"1×2":                                 func(m *manifest.Manifest) { m.Matrix.Family, m.Matrix.Entries = "file:A.csv", [][]string{{"1", "2"}} },
		"order":                               func(m *manifest.Manifest) { m.Matrix.Order = "sideways" },
		"files[0].processor: -1: want 0":      func(m *manifest.Manifest) { m.Files[0].Processor = -1 },
	} {
		coded, _, _ := encoded(t, []int{10, 20, 30}, "--field", "257", "--matrix", "vandermonde")
		editManifest(t, coded, edit)
		wants(t, refused(t, exit.Usage, coded), want, filepath.Join(coded, manifest.FileName))
	}
}
