package cli

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/reedsolomon"

	"volley"
	"volley/internal/cli/session"

	codedpkg "volley/coded"
	"volley/coded/manifest"
	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/exit"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/sim"
)

// result is what a run of the command line gave.
type result struct {
	code           int
	stdout, stderr string
}

// volleyRun runs the command line in this process.
func volleyRun(args ...string) result {
	return resultIn(context.Background(), session.New(), args...)
}

// mustRun runs the command line and fails the test unless it exits with 0.
func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	r := volleyRun(args...)
	if r.code != exit.OK {
		t.Fatalf("volley %s: exit %d: %s", strings.Join(args, " "), r.code, r.stderr)
	}
	return r.stdout
}

// expect runs a command line of words and then of directories. It fails the test unless that exits with the code and
// prints all of these texts, and returns what it prints.
func expect(t *testing.T, code int, words string, dirs []string, texts ...string) string {
	t.Helper()
	r := volleyRun(append(strings.Fields(words), dirs...)...)
	if r.code != code {
		t.Fatalf("volley %s: %+v: want exit code %d", words, r, code)
	}
	wants(t, r.stdout+r.stderr, texts...)
	return r.stdout + r.stderr
}

// writePackets writes a file of random bytes for each size and returns their
// directory and contents.
func writePackets(t *testing.T, sizes ...int) (string, [][]byte) {
	t.Helper()
	dir := t.TempDir()
	rng := rand.NewChaCha8([32]byte{1})
	packets := make([][]byte, len(sizes))
	for k, n := range sizes {
		packets[k] = make([]byte, n)
		rng.Read(packets[k])
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("packet.%02d", k)), packets[k], 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir, packets
}

func readFile(t *testing.T, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func listDir(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// readCoded returns the coded packets of a directory.
func readCoded(t *testing.T, dir string, k int) [][]byte {
	t.Helper()
	coded := make([][]byte, k)
	for i := range coded {
		coded[i] = readFile(t, dir, manifest.CodedName(i, k, 0))
	}
	return coded
}

// TestEncodeEqualsReedSolomon compares the coded files of 16 files of different
// lengths with the parity that klauspost/reedsolomon computes with the same
// matrix, byte for byte, for every algorithm.
func TestEncodeEqualsReedSolomon(t *testing.T) {
	t.Parallel()
	sizes := []int{0, 1, 3_000_000, 2, 65535, 65536, 65537, 1 << 20, 17, 999, 4096, 2_500_001, 1<<20 + 1, 5, 300_000, 3_145_729}
	in, packets := writePackets(t, sizes...)
	const k = 16
	longest := 0
	for _, n := range sizes {
		longest = max(longest, n)
	}
	a, err := matrix.Cauchy(fieldtest.Parse(t, "2^8"), k, k)
	if err != nil {
		t.Fatal(err)
	}
	rows := make([][]byte, k)
	shards := make([][]byte, 2*k)
	for j := range k {
		rows[j] = make([]byte, k)
		for i := range k {
			rows[j][i] = byte(a.At(i, j)[0])
		}
		shards[j] = append(packets[j], make([]byte, longest-len(packets[j]))...)
		shards[k+j] = make([]byte, longest)
	}
	rs, err := reedsolomon.New(k, k, reedsolomon.WithCustomMatrix(rows))
	if err != nil {
		t.Fatal(err)
	}
	if err := rs.Encode(shards); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{}, {"--model", "paper", "-p", "3", "--memory", "1MiB"}, {"--algorithm", "prepare-and-shoot"}, {"--algorithm", "bruck-allgather", "--model", "paper", "-p", "2"},
		{"--algorithm", "bruck-allgather", "--model", "paper", "-p", "4"}, {"--algorithm", "exchange"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "coded")
			mustRun(t, append(args, "encode", "-o", out, in)...)
			for j, coded := range readCoded(t, out, k) {
				if !bytes.Equal(coded, shards[k+j]) {
					t.Errorf("coded packet %d of %d bytes is not the parity shard of %d", j, len(coded), longest)
				}
			}
			if got := listDir(t, out); len(got) != k+2 || got[k] != manifest.CopyName || got[k+1] != manifest.FileName {
				t.Errorf("the directory holds %v, want coded.00 to coded.15, the manifest and its copy", got)
			}
		})
	}
}

// decodePackets undoes an encode by the inverse matrix, symbol by symbol.
func decodePackets(t *testing.T, a matrix.Matrix, coded [][]byte) [][]byte {
	t.Helper()
	inverse, err := matrix.Inverse(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	f := a.Field()
	out := make([][]byte, len(coded))
	for j := range coded {
		out[j] = make([]byte, len(coded[j]))
		coefs := make([]field.Element, len(coded))
		for i := range coded {
			coefs[i] = inverse.At(i, j)
		}
		f.Combine(out[j], coefs, coded)
	}
	return out
}

// TestEncodeBytesOverFields encodes byte files over fields that pack bytes, and
// decodes them by hand.
func TestEncodeBytesOverFields(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"2^8", "2^16", "2^4", "2^12", "257", "3^4", "5", "65537", "2147483647"} {
		for _, spec := range []string{"random:5", "vandermonde"} {
			f := fieldtest.Parse(t, name)
			k := 4
			s, err := matrices.ParseSpec(spec)
			if err != nil {
				t.Fatal(err)
			}
			a, err := s.Build(f, k, k)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := matrix.Inverse(t.Context(), a); err != nil {
				t.Fatalf("%s over %s: %v: choose another seed", spec, name, err)
			}
			in, packets := writePackets(t, 1000, 0, 1, 777)
			out := filepath.Join(t.TempDir(), "coded")
			mustRun(t, "encode", "--field", name, "--matrix", spec, "-o", out, in)
			p := field.PackingOf(f)
			for i, symbols := range decodePackets(t, a, readCoded(t, out, k)) {
				if len(symbols) != int(p.Symbols(1000))*f.SymbolBytes() {
					t.Fatalf("%s: coded files of %d bytes", name, len(symbols))
				}
				got := make([]byte, len(packets[i]))
				if err := p.Unpack(got, symbols[:int(p.Symbols(int64(len(got))))*f.SymbolBytes()]); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, packets[i]) {
					t.Errorf("%s, %s: input %d does not come back", name, spec, i)
				}
			}
		}
	}
}

// TestEncodeInverse encodes by A and then by its inverse: the inputs come back.
func TestEncodeInverse(t *testing.T) {
	t.Parallel()
	in, packets := writePackets(t, 500, 500, 500, 500, 500, 500)
	dir := t.TempDir()
	coded, back := filepath.Join(dir, "coded"), filepath.Join(dir, "back")
	mustRun(t, "encode", "--field", "7", "--matrix", "dft", "-o", coded, in)
	remove(t, coded, manifest.FileName)
	remove(t, coded, manifest.CopyName)
	mustRun(t, "encode", "--field", "7", "--matrix", "dft", "--inverse", "--symbols", "-o", back, coded)
	p := field.PackingOf(fieldtest.Parse(t, "7"))
	for k, symbols := range readCoded(t, back, 6) {
		got := make([]byte, 500)
		if err := p.Unpack(got, symbols); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, packets[k]) {
			t.Errorf("input %d does not come back", k)
		}
	}
}

// TestEncodeReport checks the JSON object of encode against what is known of the
// run, and that stdout holds nothing else.
func TestEncodeReport(t *testing.T) {
	t.Parallel()
	in, _ := writePackets(t, make([]int, 17)...)
	dir := t.TempDir()
	out := mustRun(t, "encode", "--json", "-o", filepath.Join(dir, "a"), in, "--model", "paper", "--algorithm", "prepare-and-shoot")
	var object map[string]any
	if err := json.Unmarshal([]byte(out), &object); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	for key, want := range map[string]any{
		"algorithm": "prepare-and-shoot", "field": "2^8", "matrix": "cauchy", "k": 17.0, "ports": 1.0,
		"c1": 5.0, "c2": 10.0, "bound_c1": 5.0, "bound_c2": 6.0, "packet_bytes": 0.0, "symbols_per_packet": 0.0,
		"segments": 1.0, "bytes_sent_max": 0.0, "order": "natural", "verified": true,
		"control_rounds": 0.0, "control_bytes": 0.0, // one process has nobody to agree with
	} {
		if object[key] != want {
			t.Errorf("%s = %v, want %v", key, object[key], want)
		}
	}
	for _, key := range []string{"c3", "plan_hash", "seconds"} {
		if object[key] == nil || object[key] == 0.0 {
			t.Errorf("%s = %v, want more than nothing", key, object[key])
		}
	}
	rounds, _ := object["rounds"].([]any)
	if len(rounds) != 5 {
		t.Fatalf("%d rounds, want 5", len(rounds))
	}
	for i, want := range []float64{1, 2, 4, 2, 1} {
		r := rounds[i].(map[string]any)
		if r["largest_message"] != want || r["messages"] != 17.0 {
			t.Errorf("round %d: %v, want 17 messages of up to %v", i, r, want)
		}
	}
}

// encodeReport runs encode and returns its report.
func encodeReport(t *testing.T, args ...string) volley.Report {
	t.Helper()
	var r volley.Report
	out := mustRun(t, append([]string{"encode", "--json", "-o", filepath.Join(t.TempDir(), "out")}, args...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestEncodeFlags checks the effect of each flag.
func TestEncodeFlags(t *testing.T) {
	t.Parallel()
	in, _ := writePackets(t, 200_000, 200_000, 200_000, 200_000, 200_000, 200_000, 200_000, 200_000, 200_000)
	if r := encodeReport(t, "--model", "paper", "-p", "2", in); r.Ports != 2 || r.C1 != 2 {
		t.Errorf("-p 2: %d ports, %d rounds", r.Ports, r.C1)
	}
	if r := encodeReport(t, "--model", "paper", "-p", "100", in); r.Ports != 8 || r.C1 != 1 {
		t.Errorf("-p 100: %d ports, %d rounds, want 8 and 1", r.Ports, r.C1)
	}
	whole, pieces := encodeReport(t, in), encodeReport(t, "--memory", "256KiB", in)
	if whole.Segments != 1 || pieces.Segments < 5 {
		t.Errorf("--memory 256KiB: %d segments, without: %d", pieces.Segments, whole.Segments)
	}
	if pieces.C1 != whole.C1 || pieces.C2 != whole.C2 || pieces.BytesSentMax != whole.BytesSentMax {
		t.Errorf("segments change the costs: %+v and %+v", pieces, whole)
	}
	if r := encodeReport(t, "--check", "off", in); r.Verified || r.CheckSeconds > 0 || whole.CheckSeconds == 0 {
		t.Errorf("--check off: %+v", r)
	}
	if r := encodeReport(t, "--field", "2^16", in); r.Field != "2^16" || r.SymbolsPerPacket != 100_000 {
		t.Errorf("--field 2^16: %+v", r)
	}
	if r := encodeReport(t, "--matrix", "random:3", "--inverse", in); r.Matrix != "inverse(random:3)" {
		t.Errorf("--matrix random:3 --inverse: %s", r.Matrix)
	}
	// Without transmission time, the fewest rounds win; without start-up time, the
	// least volume; a central processor never does.
	if r := encodeReport(t, "--model", "paper", "--beta", "1s", "--tau", "0s", in); r.C1 != 4 {
		t.Errorf("--beta 1s --tau 0s: %s in %d rounds, want 4", r.Algorithm, r.C1)
	}
	for _, beta := range []string{"0s", "1ms"} {
		for _, tau := range []string{"0.1ns", "1us"} {
			r := encodeReport(t, "--model", "paper", "--beta", beta, "--tau", tau, in)
			if c := (sim.Cost{C1: r.C1, C2: r.C2}); c.C2 > 5 {
				t.Errorf("--beta %s --tau %s: %s with %+v", beta, tau, r.Algorithm, c)
			}
		}
	}
	single, err := filepath.Glob(filepath.Join(in, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if r := encodeReport(t, append(single, "-k", "9")...); r.K != 9 {
		t.Errorf("nine files: K = %d", r.K)
	}
	if r := encodeReport(t, "-k", "3", filepath.Join(in, "packet.0{rank}")); r.K != 3 {
		t.Errorf("a pattern and -k 3: K = %d", r.K)
	}
}

// TestEncodeDirectory checks which files of a directory are packets.
func TestEncodeDirectory(t *testing.T) {
	t.Parallel()
	in, _ := writePackets(t, 10, 20)
	if err := os.Mkdir(filepath.Join(in, "sub"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(in, ".hidden"), []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	if r := encodeReport(t, in); r.K != 2 {
		t.Errorf("K = %d, want 2", r.K)
	}
}

// TestEncodeSymbols encodes symbols: two packets of three, of two bytes each.
func TestEncodeSymbols(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	symbols := func(values ...uint16) (text []byte) {
		for _, v := range values {
			text = binary.LittleEndian.AppendUint16(text, v)
		}
		return text
	}
	var in []string
	for k, text := range [][]byte{symbols(1, 2, 256), symbols(0, 5, 100)} {
		in = append(in, filepath.Join(dir, fmt.Sprint("x.", k)))
		if err := os.WriteFile(in[k], text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	a := filepath.Join(dir, "a.csv")
	if err := os.WriteFile(a, []byte("1,1\n1,2\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	mustRun(t, "encode", "--field", "257", "--matrix", "file:"+a, "--symbols", "-o", out, in[0], in[1])
	for k, want := range [][]byte{symbols(1, 7, 99), symbols(1, 12, 199)} {
		if got := readFile(t, out, manifest.CodedName(k, 2, 0)); !bytes.Equal(got, want) {
			t.Errorf("coded file %d is %x, want %x", k, got, want)
		}
	}
}

func TestManifest(t *testing.T) {
	t.Parallel()
	in, packets := writePackets(t, 300, 5, 0)
	out := filepath.Join(t.TempDir(), "out")
	mustRun(t, "encode", "--field", "257", "--matrix", "vandermonde", "--points", "powers", "-o", out, in)
	m, err := codedpkg.ReadManifest(filepath.Join(out, manifest.FileName))
	if err != nil {
		t.Fatal(err)
	}
	if m.Field != "257" || m.Processors != 3 || m.SymbolBytes != 2 || m.BitsPerSymbol != 8 || m.SymbolsPerPacket != 300 {
		t.Errorf("%+v", m)
	}
	if p := m.Matrix.Points; len(p) != 1 || fmt.Sprint(p[0].Values) != "[1 3 9]" {
		t.Errorf("points %v, want the powers of 3", p)
	}
	for k, f := range m.Files {
		if f.Processor != k || f.Bytes != 600 || string(f.Name) != fmt.Sprint("coded.", k) || f.SHA256 != sha(readFile(t, out, string(f.Name))) {
			t.Errorf("coded file %d: %+v", k, f)
		}
	}
	for k, f := range m.Inputs {
		if f.Processor != k || f.Bytes != int64(len(packets[k])) || f.SHA256 != sha(packets[k]) {
			t.Errorf("input %d: %+v", k, f)
		}
	}
}

// TestEncodeCoded refuses what encode has made: its manifest is no packet.
func TestEncodeCoded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	coded := filepath.Join(dir, "coded")
	mustRun(t, "encode", "-o", coded, filepath.Join("..", "..", "examples", "packets"))
	again := filepath.Join(dir, "again")
	if r := volleyRun("encode", "-o", again, coded); r.code != exit.Usage || !strings.Contains(r.stderr, "manifest.json: the directory holds coded packets") {
		t.Errorf("exit %d, %s", r.code, r.stderr)
	}
	if err := os.WriteFile(filepath.Join(coded, "manifest.json"), []byte("{}"), 0o644); err != nil { // of somebody else
		t.Fatal(err)
	}
	mustRun(t, "encode", "-o", again, coded)
}
