package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"volley"
	codedpkg "volley/coded"
	"volley/coded/manifest"
	"volley/field/fieldtest"
	"volley/files"
	"volley/internal/exit"
	"volley/matrix/matrices"
)

// encoded encodes files of the given sizes and returns the directory of coded
// files, that of the inputs, and their contents.
func encoded(t *testing.T, sizes []int, flags ...string) (dir, in string, packets [][]byte) {
	t.Helper()
	in, packets = writePackets(t, sizes...)
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
	if err != nil {
		t.Fatal(err)
	}
	edit(m)
	m.SHA256 = "" // as manifests were once
	os.Remove(filepath.Join(dir, manifest.CopyName))
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(data))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path ...string) {
	t.Helper()
	if err := os.Remove(filepath.Join(path...)); err != nil {
		t.Fatal(err)
	}
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

// TestDecode encodes files of different lengths with every family over fields of
// every kind. All coded files give the inputs back, and so do, where there is
// redundancy, those of half the processors with the other half of the inputs.
func TestDecode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "A.csv")
	write(t, file, "1,1,1,1\n0,1,2,3\n0,0,1,2\n0,0,0,1\n")
	points := filepath.Join(dir, "points")
	write(t, points, "1 5 2 7")
	sizes := []int{1000, 0, 1, 777}
	done := 0
	for _, name := range []string{"2^8", "2^16", "257", "3^4", "5", "2^4", "babybear"} {
		f := fieldtest.Parse(t, name)
		for _, family := range matrices.Families() {
			spec := strings.NewReplacer("SEED", "5", "A.csv", file).Replace(family.String())
			flagsets := [][]string{{}, {"--inverse"}}
			if family.Name == "vandermonde" {
				flagsets = append(flagsets, []string{"--points", "powers"}, []string{"--points", points, "--inverse"})
			}
			if family.Name == "dft" {
				flagsets = append(flagsets, []string{"--order", "reversed"})
			}
			for _, flags := range flagsets {
				flags = append([]string{"--field", name, "--matrix", spec}, flags...)
				t.Run(strings.Join(flags, " "), func(t *testing.T) {
					r := volleyRun(append([]string{"matrix", "-k", fmt.Sprint(len(sizes))}, flags...)...)
					if r.code != exit.OK {
						t.Skip(r.stderr)
					}
					if a, err := matrices.FromCSV(f, strings.NewReader(r.stdout), "A"); err != nil {
						t.Skip(err)
					} else if _, err := a.Inverse(); err != nil {
						t.Skip(err)
					}
					coded, in, packets := encoded(t, sizes, flags...)
					back := filepath.Join(t.TempDir(), "back")
					out := mustRun(t, "decode", coded, "-o", back)
					checkDecoded(t, back, packets)
					wants(t, out, "4 inputs in "+back, "verified")

					// Two of the inputs stand for two of the coded files, if they can.
					r = volleyRun("decode", coded, filepath.Join(in, "packet.01"), filepath.Join(in, "packet.03"), "-o", back+"2", "--model", "paper", "-p", "2")
					if r.code != exit.OK {
						wants(t, r.stderr, "needed")
						return
					}
					checkDecoded(t, back+"2", packets)
					done++
				})
			}
		}
	}
	if done < 20 {
		t.Errorf("only %d mixtures of inputs and coded files were decoded", done)
	}
}

// TestDecodeWays decodes what was encoded in pieces, in another order of columns, and
// for more or fewer sinks than sources.
func TestDecodeWays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flags     string
		survivors []string
	}{
		{"--algorithm exchange", nil},
		{"--network wan --algorithm exchange:2,2 --field 257", nil},
		{"--field 257 --matrix dft --order any --model paper --beta 0", nil},
		{"--field 257 --matrix dft --order any --model paper --beta 0 --inverse", nil},
		{"--sinks 6", nil},
		{"--sinks 4 --separate --field babybear", nil},
		{"--sinks 3 --matrix rs:vandermonde", []string{"packet.02"}},
		{"--sinks 1 --separate --model paper --beta 0", []string{"packet.00", "packet.01", "packet.03"}},
	} {
		t.Run(c.flags, func(t *testing.T) {
			coded, in, packets := encoded(t, []int{1000, 0, 1, 777}, strings.Fields(c.flags)...)
			back := filepath.Join(t.TempDir(), "back")
			args := []string{"decode", coded, "-o", back}
			for _, name := range c.survivors {
				args = append(args, filepath.Join(in, name))
			}
			wants(t, mustRun(t, args...), "verified")
			checkDecoded(t, back, packets)
		})
	}
}

// TestDecodeLarge decodes files of many segments, for every algorithm.
func TestDecodeLarge(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"2^8", "257", "koalabear"} {
		coded, in, packets := encoded(t, []int{3_000_000, 1, 2_999_999, 65_537, 0, 1 << 20}, "--field", name)
		for i, flags := range [][]string{
			{}, {"--memory", "1MiB", "--network", "wan"}, {"--memory", "1MiB", "--model", "paper", "-p", "2"}, {"--algorithm", "exchange"},
			{"--algorithm", "bruck-allgather", "--check", "off", "--model", "paper", "--beta", "1s", "--tau", "1ns", "--timeout", "1m"},
		} {
			back := filepath.Join(t.TempDir(), "back")
			args := append([]string{"decode", "--json", coded, "-o", back}, flags...)
			if i%2 == 1 {
				args = append(args, filepath.Join(in, "packet.03"), filepath.Join(in, "packet.01"))
			}
			var r volley.Report
			if err := json.Unmarshal([]byte(mustRun(t, args...)), &r); err != nil {
				t.Fatal(err)
			}
			checkDecoded(t, back, packets)
			if r.K != 6 || r.Field != name || r.Verified == slices.Contains(flags, "off") {
				t.Errorf("%v: %+v", flags, r)
			}
			if i == 0 && r.Matrix != "inverse(cauchy)" {
				t.Errorf("all coded files are decoded by %s", r.Matrix)
			}
		}
	}
}

// TestDecodeStructure checks that the manifest is enough for the structure of a
// matrix: to decode takes the algorithm that it took to encode.
func TestDecodeStructure(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]string{
		"--field 257 --matrix dft": "dft", "--field babybear --matrix vandermonde": "draw-and-loose", "--matrix cauchy": "cauchy",
	} {
		for _, inverse := range []string{"--inverse=false", "--inverse"} {
			coded, _, packets := encoded(t, slices.Repeat([]int{1000}, 16), append(strings.Fields(flags), inverse)...)
			back := filepath.Join(t.TempDir(), "back")
			var r volley.Report
			if err := json.Unmarshal([]byte(mustRun(t, "decode", "--json", "-o", back, coded)), &r); err != nil {
				t.Fatal(err)
			}
			checkDecoded(t, back, packets)
			if r.Algorithm != want {
				t.Errorf("%s %s: decoded by %s, want %s", flags, inverse, r.Algorithm, want)
			}
		}
	}
}

// TestDecodeSubsets takes any inputs and any coded files of a Cauchy code: four
// or more are enough, and less are refused with the names of what is unknown.
func TestDecodeSubsets(t *testing.T) {
	t.Parallel()
	const k = 4
	coded, in, packets := encoded(t, []int{5, 0, 30, 17})
	part := filepath.Join(t.TempDir(), "part")
	for set := range 1 << (2 * k) {
		if err := os.RemoveAll(part); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(part, 0o777); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(part, manifest.FileName), string(readFile(t, coded, manifest.FileName)))
		args := []string{part}
		lost, there := []string{}, []int{}
		for j := range k {
			if name := manifest.CodedName(j, k, 0); set>>j&1 == 1 {
				write(t, filepath.Join(part, name), string(readFile(t, coded, name)))
				there = append(there, j)
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
		back := filepath.Join(t.TempDir(), "back")
		r := volleyRun(append([]string{"decode", "-o", back}, args...)...)
		if r.code != exit.OK {
			t.Fatalf("%v: exit %d: %s", args, r.code, r.stderr)
		}
		checkDecoded(t, back, packets)
		if strings.Count(r.stderr, "is left out: missing") != k-len(there) {
			t.Errorf("coded files %v are there: %s", there, r.stderr)
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
	wants(t, refused(t, exit.Usage, coded, name(0), "--force", coded), "1 more input", "Survivors left out, as no input: "+filepath.Join(coded, "coded.0"))
	for _, known := range [][]int{{0, 1}, {0, 2}, {3, 0}, {1, 2, 3}, {0, 1, 2, 3}} {
		args := []string{"decode", coded, "-o", filepath.Join(t.TempDir(), "back")}
		for _, k := range known {
			args = append(args, name(k))
		}
		r := volleyRun(args...)
		if r.code != exit.OK {
			t.Errorf("with inputs %v: exit %d: %s", known, r.code, r.stderr)
			continue
		}
		checkDecoded(t, args[3], packets)
	}

	// A column that is not needed may be damaged, and one that another can stand for.
	write(t, filepath.Join(coded, "coded.2"), strings.Repeat("x", 60))
	back := filepath.Join(t.TempDir(), "back")
	if r := volleyRun("decode", coded, name(0), name(1), "-o", back); r.code != exit.OK || r.stderr != "" {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	write(t, filepath.Join(coded, "coded.0"), strings.Repeat("x", 60))
	back += "2"
	r := volleyRun("decode", coded, name(0), name(1), "-o", back)
	if r.code != exit.OK || r.stderr != fmt.Sprintf("volley: %s/coded.0 is left out: damaged: another SHA-256\n", coded) {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	checkDecoded(t, back, packets)

	// Nor are coded files that cannot be read, be it what it may.
	remove(t, coded, "coded.0")
	if err := os.Mkdir(filepath.Join(coded, "coded.0"), 0o777); err != nil {
		t.Fatal(err)
	}
	back += "3"
	r = volleyRun("decode", coded, name(0), name(1), "-o", back)
	if r.code != exit.OK || !strings.Contains(r.stderr, "coded.0 is left out: not a regular file") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}

	// All inputs need no matrix.
	back += "4"
	if r := volleyRun("decode", coded, in, "-o", back); r.code != exit.OK || !strings.Contains(r.stdout, "4 inputs, which all survive, in "+back) {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	checkDecoded(t, back, packets)
}

// TestDecodeSwapped swaps the names of two coded files: decode says which they are, and calls none damaged.
func TestDecodeSwapped(t *testing.T) {
	t.Parallel()
	coded, _, packets := encoded(t, []int{50, 60, 70})
	swap := func() {
		for _, names := range [][2]string{{"coded.0", "x"}, {"coded.1", "coded.0"}, {"x", "coded.1"}} {
			if err := os.Rename(filepath.Join(coded, names[0]), filepath.Join(coded, names[1])); err != nil {
				t.Fatal(err)
			}
		}
	}
	swap()
	wants(t, refused(t, exit.Usage, coded), "2 more", "coded.0 (it is coded.1: give it that name), coded.1 (it is coded.0: give it that name)")
	swap()
	back := filepath.Join(t.TempDir(), "back")
	mustRun(t, "decode", coded, "-o", back)
	checkDecoded(t, back, packets)
}

// TestDecodeDamaged damages coded files one after the other.
func TestDecodeDamaged(t *testing.T) {
	t.Parallel()
	coded, in, packets := encoded(t, []int{50, 60, 70})
	for j, damage := range []func(path string){
		func(path string) { write(t, path, strings.Repeat("x", 70)) },
		func(path string) { write(t, path, "short") },
		func(path string) { remove(t, path) },
	} {
		damage(filepath.Join(coded, manifest.CodedName(j, 3, 0)))
		args := []string{"decode", "-o", filepath.Join(t.TempDir(), "back"), coded}
		for k := range j + 1 {
			args = append(args, filepath.Join(in, fmt.Sprintf("packet.%02d", k)))
		}
		r := volleyRun(args...)
		if r.code != exit.OK {
			t.Fatalf("%d damaged: exit %d: %s", j+1, r.code, r.stderr)
		}
		checkDecoded(t, args[2], packets)
		// A damaged file is noticed where it is wanted, a missing one always.
		if j == 0 {
			wants(t, r.stderr, "coded.0 is left out: ")
		}
		if j > 0 {
			wants(t, r.stderr, "coded.1 is left out: damaged: 5 bytes, not 70")
		}
	}
	wants(t, refused(t, exit.Usage, coded, filepath.Join(in, "packet.00")), "2 more", "packet.01", "packet.02",
		"coded.0 (damaged: another SHA-256), coded.1 (damaged: 5 bytes, not 70), coded.2 (missing)")
	wants(t, refused(t, exit.Usage, filepath.Join(in, "packet.00")), "volley encode")
	wants(t, refused(t, exit.Usage, in), "manifest.json", "volley encode")
}

// TestDecodeSurvivors gives survivors in odd ways.
func TestDecodeSurvivors(t *testing.T) {
	t.Parallel()
	in, packets := writePackets(t, 9, 0, 12, 0, 8, 8)
	write(t, filepath.Join(in, "packet.05"), string(packets[4])) // two are equal, and two are empty
	packets[5] = packets[4]
	coded := filepath.Join(t.TempDir(), "coded")
	mustRun(t, "encode", "-o", coded, "--field", "2^16", in)
	for j := range 3 {
		remove(t, coded, manifest.CodedName(j, 6, 0))
	}
	odd := t.TempDir()
	write(t, filepath.Join(odd, "of node five"), string(packets[5]))
	write(t, filepath.Join(odd, "x"), "")
	write(t, filepath.Join(odd, ".hidden"), "none of the inputs")
	back := filepath.Join(t.TempDir(), "back")
	r := volleyRun("decode", "-o", back, coded, odd, filepath.Join(odd, "x"))
	if r.code != exit.OK {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	checkDecoded(t, back, packets)
	wants(t, r.stdout, "6 inputs, of which 2 lost and decoded from coded.3, coded.4, in "+back)

	write(t, filepath.Join(odd, "packet.02"), "shorter")
	back = filepath.Join(t.TempDir(), "back")
	r = volleyRun("decode", "-o", back, coded, odd, filepath.Join(odd, "x"))
	if r.code != exit.OK {
		t.Fatalf("a survivor that is none: exit %d: %s", r.code, r.stderr)
	}
	checkDecoded(t, back, packets)
	wants(t, r.stderr, "survivor "+filepath.Join(odd, "packet.02")+" (7 bytes of SHA-256 13602ce54433…; ", "packet.02 had 12 of ", "is left out: it is no input of "+coded)
	for j := 3; j < 5; j++ {
		remove(t, coded, manifest.CodedName(j, 6, 0))
	}
	wants(t, refused(t, exit.Usage, coded, odd), "1 more input or coded file is needed", "Survivors left out, as no input: "+filepath.Join(odd, "packet.02")+" (7 bytes")
	wants(t, refused(t, exit.Usage, coded, filepath.Join(odd, "packet.02"), filepath.Join(odd, ".hidden")), "cannot use any survivor", "7 bytes", "18 bytes")
	wants(t, refused(t, exit.Usage, coded, filepath.Join(odd, ".hidden")), ".hidden (18 bytes")
	wants(t, refused(t, exit.Usage, coded, filepath.Join(odd, "none")), "none: no such file")
	wants(t, refused(t, exit.Usage, coded, "/dev/null"), "not a regular file")
	wants(t, refused(t, exit.Usage, coded, t.TempDir()), "no packets")
	wants(t, refused(t, exit.Usage), "no directory")
	wants(t, refused(t, exit.Usage, coded, "--check", "maybe"), "maybe")
	mustRun(t, "encode", "--force", "-o", coded, "--field", "2^16", in)
	wants(t, refused(t, exit.Usage, coded, odd+"/x", odd+"/of node five", "--algorithm", "magic"), "magic")
	wants(t, refused(t, exit.Usage, coded, odd+"/x", odd+"/of node five", "--memory", "7"), "needs at least")
	wants(t, refused(t, exit.Usage, coded, odd+"/x", odd+"/of node five", "--model", "paper", "-p", "0"), "0 ports")
}

// TestDecodeSymbols decodes inputs that were symbols already.
func TestDecodeSymbols(t *testing.T) {
	t.Parallel()
	in := t.TempDir()
	packets := [][]byte{{1, 0, 0, 1}, {}, {255, 0}}
	for k, p := range packets {
		write(t, filepath.Join(in, fmt.Sprintf("packet.%02d", k)), string(p))
	}
	coded, back := filepath.Join(t.TempDir(), "coded"), filepath.Join(t.TempDir(), "back")
	mustRun(t, "encode", "-o", coded, "--field", "257", "--symbols", in)
	mustRun(t, "decode", "-o", back, coded)
	checkDecoded(t, back, packets)
	mustRun(t, "decode", "-o", back+"2", coded, filepath.Join(in, "packet.00"))
	checkDecoded(t, back+"2", packets)
}

// TestDecodeNames encodes inputs whose names cannot be those of the files of one
// directory.
func TestDecodeNames(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{{"a/x", "b/x"}, {"..", "x"}, {"x", "/"}, {"", "x"}, {".volley-x", "x"}, {"a\x00b", "x"}, {strings.Repeat("x", 256), "y"}} {
		coded, _, packets := encoded(t, []int{10, 20})
		editManifest(t, coded, func(m *manifest.Manifest) {
			for k := range names {
				m.Inputs[k].Name = files.Name(names[k])
			}
		})
		back := filepath.Join(t.TempDir(), "back")
		r := volleyRun("decode", "-o", back, coded)
		if r.code != exit.OK || !strings.Contains(r.stderr, "become input.0, input.1:") {
			t.Errorf("%q: exit %d: %s", names, r.code, r.stderr)
		}
		if got := strings.Join(listDir(t, back), " "); got != "input.0 input.1" || !bytes.Equal(readFile(t, back, "input.1"), packets[1]) {
			t.Errorf("%q: %s", names, got)
		}
	}
	long := strings.Repeat("x", 255)
	coded, _, packets := encoded(t, []int{10, 20})
	editManifest(t, coded, func(m *manifest.Manifest) { m.Inputs[1].Name = files.Name("/../../" + long) })
	back := filepath.Join(t.TempDir(), "back")
	mustRun(t, "decode", "-o", back, coded)
	if got := readFile(t, back, long); !bytes.Equal(got, packets[1]) {
		t.Errorf("a long name: %q", got)
	}
}

// TestDecodeOutput decodes into directories that are not empty.
func TestDecodeOutput(t *testing.T) {
	t.Parallel()
	coded, in, packets := encoded(t, []int{10, 20, 30})
	back := t.TempDir()
	write(t, filepath.Join(back, "packet.01"), "old")
	write(t, filepath.Join(back, "theirs"), "theirs")
	r := volleyRun("decode", "-o", back, coded)
	if r.code != exit.Usage || !strings.Contains(r.stderr, filepath.Join(back, "packet.01")+" is there already") || !strings.Contains(r.stderr, "--force") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	if got := strings.Join(listDir(t, back), " "); got != "packet.01 theirs" {
		t.Errorf("a refused run leaves %s", got)
	}
	write(t, filepath.Join(back, ".volley-old"), "")
	mustRun(t, "decode", "--force", "-o", back, coded)
	if got := strings.Join(listDir(t, back), " "); got != "packet.00 packet.01 packet.02 theirs" {
		t.Errorf("with --force: %s", got)
	}
	remove(t, back, "theirs")
	checkDecoded(t, back, packets)

	// What is decoded from is not replaced.
	r = volleyRun("decode", "--force", "-o", in, coded, in)
	if r.code != exit.Usage || !strings.Contains(r.stderr, "is an input") {
		t.Errorf("over the survivors: exit %d: %s", r.code, r.stderr)
	}
	editManifest(t, coded, func(m *manifest.Manifest) { m.Inputs[1].Name = "coded.2" })
	r = volleyRun("decode", "--force", "-o", coded, coded)
	if r.code != exit.Usage || !strings.Contains(r.stderr, "is an input") {
		t.Errorf("over the coded files: exit %d: %s", r.code, r.stderr)
	}

	// A directory in the way, and a file.
	remove(t, back, "packet.01")
	if err := os.Mkdir(filepath.Join(back, "coded.2"), 0o777); err != nil {
		t.Fatal(err)
	}
	r = volleyRun("decode", "--force", "-o", back, coded)
	if r.code != exit.Usage || !strings.Contains(r.stderr, "coded.2 is a directory") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	r = volleyRun("decode", "-o", filepath.Join(in, "packet.00"), coded)
	if r.code != exit.Usage || !strings.Contains(r.stderr, "packet.00") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}

	// A dry run.
	out := filepath.Join(t.TempDir(), "out")
	wants(t, mustRun(t, "decode", "--dry-run", "-o", out, coded), "nothing written", "3 packets")
	wants(t, mustRun(t, "decode", "--dry-run", coded), "nothing written", "not checked")
	if _, err := os.Lstat(out); err == nil {
		t.Error("a dry run made the directory")
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
			text := refused(t, exit.Wrong, coded)
			wants(t, text, "not what was encoded", "packet.0", "manifest")
			if (name == "length" || name == "sum") && !strings.Contains(text, "packet.02: what is decoded is not") {
				t.Errorf("%s: %q does not name the input", name, text)
			}
		}
	}
}

var cauchyPoints = []manifest.PointList{{Name: "x", Values: []string{"0", "1", "2"}}, {Name: "y", Values: []string{"3", "4", "5"}}}

// TestDecodeManifest decodes with manifests that cannot be right: the message
// names the key.
func TestDecodeManifest(t *testing.T) {
	t.Parallel()
	for want, edit := range map[string]func(m *manifest.Manifest){
		"processors: 0":                       func(m *manifest.Manifest) { m.Processors = 0 },
		"files: 3 of them: want 4":            func(m *manifest.Manifest) { m.Processors = 4 },
		`"2^99"`:                              func(m *manifest.Manifest) { m.Field = "2^99" },
		"symbol_bytes: 2":                     func(m *manifest.Manifest) { m.Field = "2^8" },
		"symbol_bytes: 0":                     func(m *manifest.Manifest) { m.SymbolBytes = 0 },
		"bits_per_symbol: 7":                  func(m *manifest.Manifest) { m.BitsPerSymbol = 7 },
		"symbols_per_packet: -1":              func(m *manifest.Manifest) { m.SymbolsPerPacket = -1 },
		"files[0].bytes: 60":                  func(m *manifest.Manifest) { m.SymbolsPerPacket = 31 },
		"inputs[2].bytes: 31":                 func(m *manifest.Manifest) { m.Inputs[2].Bytes = 31 },
		"inputs[2].bytes: 61":                 func(m *manifest.Manifest) { m.Inputs[2].Bytes = 61 },
		"inputs[0].bytes: 15: a symbol":       func(m *manifest.Manifest) { m.BitsPerSymbol, m.Inputs[0].Bytes = 0, 15 },
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
		"matrix.entries[1]: 1 value: want 2":  func(m *manifest.Manifest) { m.Matrix.Entries = [][]string{{"1", "2"}, {"3"}} },
		"matrix.entries[1][0]: -1":            func(m *manifest.Manifest) { m.Matrix.Entries = [][]string{{"1", "2"}, {"-1", "2"}} },
		"1×2":                                 func(m *manifest.Manifest) { m.Matrix.Family, m.Matrix.Entries = "file:A.csv", [][]string{{"1", "2"}} },
		"order":                               func(m *manifest.Manifest) { m.Matrix.Order = "sideways" },
		"files[0].processor: -1: want 0":      func(m *manifest.Manifest) { m.Files[0].Processor = -1 },
	} {
		coded, _, _ := encoded(t, []int{10, 20, 30}, "--field", "257", "--matrix", "vandermonde")
		editManifest(t, coded, edit)
		wants(t, refused(t, exit.Usage, coded), want, filepath.Join(coded, manifest.FileName))
	}
	coded, _, _ := encoded(t, []int{10})
	remove(t, coded, manifest.CopyName)
	write(t, filepath.Join(coded, manifest.FileName), "{\n\"format\": \"volley-manifest\",\n\"version\": 1,\n\"processors\": \"four\"}\n")
	wants(t, refused(t, exit.Usage, coded), "line 4", "processors")
}

// stopper ends a context once something is written to it that holds the text.
type stopper struct {
	bytes.Buffer
	text string
	stop context.CancelCauseFunc
}

func (s *stopper) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(s.text)) {
		s.stop(exit.ErrInterrupted)
	}
	return s.Buffer.Write(p)
}

// TestDecodeInterrupted stops a run before it has read anything, and when it is
// about to decode.
func TestDecodeInterrupted(t *testing.T) {
	t.Parallel()
	coded, in, _ := encoded(t, []int{1 << 20, 1 << 20, 1 << 20})
	out := filepath.Join(t.TempDir(), "out")
	for _, survivors := range [][]string{nil, {filepath.Join(in, "packet.01")}} {
		ctx, stop := context.WithCancelCause(context.Background())
		stderr := &stopper{text: "decoding", stop: stop}
		code := run(ctx, append([]string{"decode", "-v", "-o", out, coded}, survivors...), &bytes.Buffer{}, stderr)
		if code != exit.Interrupted || strings.Count(stderr.String(), "volley: interrupted\n") != 1 {
			t.Errorf("decoding: exit %d: %s", code, stderr)
		}
		stderr = &stopper{text: "\x00"}
		code = run(ctx, append([]string{"decode", "-o", out, coded}, survivors...), &bytes.Buffer{}, stderr)
		if code != exit.Interrupted || stderr.String() != "volley: interrupted\n" {
			t.Errorf("reading: exit %d: %s", code, stderr)
		}
		if _, err := os.Lstat(out); err == nil {
			t.Errorf("the directory is there, with %v in it", listDir(t, out))
		}
	}
}
