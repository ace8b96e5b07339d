package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"volley/coded/manifest"
	"volley/internal/exit"
)

func sha(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// TestBadInput checks that bad input is exit code 2, that the message names what
// is wrong, once, and that nothing is written.
func TestBadInput(t *testing.T) {
	t.Parallel()
	in, _ := writePackets(t, 10, 20, 30)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	many := filepath.Join(dir, "many")
	if err := os.Mkdir(many, 0o777); err != nil {
		t.Fatal(err)
	}
	for k := range 129 {
		file(filepath.Join("many", manifest.CodedName(k, 129, 0)), "x")
	}
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o777); err != nil {
		t.Fatal(err)
	}
	tooLarge := file("large.csv", "1,2,3\n4,256,6\n7,8,9\n")
	noNumber := file("word.csv", "1,2,3\n4,five,6\n7,8,9\n")
	short := file("short.csv", "1,2,3\n4,5\n7,8,9\n")
	singular := file("singular.csv", "1,2,3\n1,2,3\n7,8,9\n")
	small := file("small.csv", "1,2\n3,4\n")
	odd := file("odd", "abc")
	symbols := file("symbols", "\x01\x00\x02\x01\xff\xff") // 1, 258, 65535
	twice := file("twice", "5 6\n5\n")
	outside := file("outside", "5 6 256\n")
	six := file("six", "9 6 7")
	out := filepath.Join(dir, "out")
	for _, c := range []struct {
		args string
		want string
	}{
		{"encode -o OUT", "no packets"},
		{"encode IN", "-o DIR"},
		{"encode -o OUT -k 4 IN", "3 packets for 4 processors"},
		{"encode -o OUT --field 2^99 IN", "2^99"},
		{"encode -o OUT --field twelve IN", "twelve"},
		{"encode -o OUT --field 2^8:0x100 IN", "reducible"},
		{"encode -o OUT --field 12 IN", "no prime power"},
		{"encode -o OUT --matrix magic IN", `"magic": want one of`},
		{"encode -o OUT --matrix random:x IN", "decimal number"},
		{"encode -o OUT --matrix dft IN/packet.00 IN/packet.01", "does not divide"},
		{"encode -o OUT --algorithm magic IN", `"magic": want auto or one of`},
		{"encode -o OUT MANY", "K + R <= 256"},
		{"encode -o OUT --matrix file:" + tooLarge + " IN", "line 2"},
		{"encode -o OUT --matrix file:" + noNumber + " IN", "five"},
		{"encode -o OUT --matrix file:" + short + " IN", "line 2"},
		{"encode -o OUT --matrix file:" + small + " IN", "2"},
		{"encode -o OUT --matrix file:" + dir + "/none.csv IN", "none.csv"},
		{"encode -o OUT --matrix file:" + singular + " --inverse IN", "singular"},
		{"encode -o OUT --points powers IN", "points"},
		{"encode -o OUT --matrix vandermonde --points " + dir + "/none IN", "none"},
		{"encode -o OUT --matrix vandermonde --points " + twice + " IN", "line 2: the point 5 is on line 1 already"},
		{"encode -o OUT --matrix lagrange --omega " + twice + " IN", "line 2: the point 5 is on line 1 already"},
		{"encode -o OUT --matrix lagrange --alpha " + outside + " IN", "line 1: 256 is outside the field 2^8"},
		{"encode -o OUT --matrix cauchy --omega " + six + " --alpha " + six + " IN", "the points x_0 and y_0 are both 9: want distinct points: change omega"},
		{"encode -o OUT --matrix cauchy --alpha " + dir + "/none IN", "none"},
		{"encode -o OUT --matrix vandermonde --omega codes IN", "vandermonde takes no omega"},
		{"encode -o OUT --alpha codes --matrix dft IN", "dft takes no alpha"},
		{"encode -o OUT --order reversed IN", "cauchy takes no order"},
		{"encode -o OUT --order up IN", `--order "up": want one of natural, reversed, any`},
		{"encode -o OUT --matrix rs:leopard IN", `"rs": want one of`},
		{"encode -o OUT --matrix rs MANY", `"rs": want one of`},
		{"encode -o OUT --matrix rs:vandermonde MANY", "K + R <= 256, or a field such as 2^16"},
		{"encode -o OUT --matrix rs:jerasure MANY", "K + R <= 257, or a field such as 2^16"},
		{"encode -o OUT --matrix fti --field 2^8 MANY", "K + R <= 256, or a field such as 2^16"},
		{"encode -o OUT --matrix lagrange --omega powers --alpha powers MANY", "K + R <= 255, or a field such as 2^16"},
		{"encode -o OUT --matrix lch --field 257 IN", "lch over 257"},
		{"plan --matrix random:1 -k 16 --max-memory 2", "want 4 or more packets of memory"},
		{"plan --matrix random:1 -k 16 --max-compute 2", "want 16 or more multiply-adds per symbol"},
		{"plan --matrix dft --field 257 -k 16 --algorithm dft --rounds-over 0 --max-memory 4", "no plan keeps the limits"},
		{"plan -k 16 --max-memory 0", "--max-memory \"0\": want a whole number, 1 or more"},
		{"plan -k 16 --rounds-over -1", "--rounds-over \"-1\": want a whole number, 0 or more"},
		{"plan -k 16 --gamma 1", "want a number and its unit"},
		{"encode --sinks 0 -o out a", "--sinks \"0\": want a whole number, 1 or more"},
		{"plan -k 4 --sinks 1 --inverse", "has no inverse"},
		{"plan --matrix dft --field 257 -k 8 --sinks 2", "dft is square only"},
		{"plan -k 6 --sinks 2 --algorithm universal", "it is for processors that are both"},
		{"plan -k 6 --algorithm sinks", "here every processor is both"},
		{"matrix --matrix lch -k 257", "K <= 256"},
		{"matrix --matrix rs:par1 -k 256", "K <= 255, or a field such as 2^16"},
		{"matrix --matrix vandermonde -k 256", "K <= 255, or a field such as 2^16"},
		{"matrix --matrix dft -k 8", "want K = 5 or 15, or a field such as 17"},
		{"matrix --matrix dft -k 8 --order reversed", "want K = 5 or 15, or a field such as 17"},
		{"encode -o OUT --model paper -p 0 IN", "0 ports"},
		{"encode -o OUT --model paper -p -3 IN", "-3 ports"},
		{"encode -o OUT " + dir + "/missing IN", "missing"},
		{"encode -o OUT " + empty, "empty"},
		{"encode -o OUT " + dir + "/p{rank}", "-k"},
		{"encode -o OUT /dev/null IN", "not a regular file"},
		{"encode -o " + odd + "/out IN", "odd"},
		{"encode -o OUT --model paper --beta 5 IN", "unit"},
		{"encode -o OUT --model paper --beta -5us IN", "-5us"},
		{"encode -o OUT --model paper --tau fast IN", "fast"},
		{"encode -o OUT --memory lots IN", "lots"},
		{"encode -o OUT --memory 7 IN", "needs at least"},
		{"encode -o OUT --check maybe IN", "maybe"},
		{"encode -o OUT --comm pigeon IN", "pigeon"},
		{"encode -o OUT --timeout -1s IN", "-1s"},
		{"encode -o OUT --symbols --field 2^16 " + odd, "3 bytes"},
		{"encode -o OUT --symbols --field 257 --matrix random:1 " + symbols, "symbol 258 at byte 2"},
		{"encode -o OUT --nonsense IN", "--nonsense"},
		{"plan", "-k"},
		{"plan -k 0", "-k"},
		{"plan -k 4 --format gif", "gif"},
		{"plan -k 4 --processor 4", "0 to 3"},
		{"plan -k 4 --format eps", "want text or csv or json"},
		{"plan -k 4 --why --format json", "--why"},
		{"plan -k 4 extra", "extra"},
		{"plan -k 4 --size big", "big"},
		{"plan -k 4 --algorithm magic", "magic"},
		{"plan -k 4 --model paper -p 0", "0 ports"},
		{"plan -k 4 --model paper -p 0 --why", "0 ports"},
		{"matrix", "-k"},
		{"matrix -k 4 --format xml", "xml"},
		{"cost -k 5..2", "5..2"},
		{"cost -k x", `"x"`},
		{"cost -k 0", `"0"`},
		{"cost -k 1..9999999", "9999999"},
		{"cost -p 0", "0 ports"},
		{"cost --format xml", "xml"},
		{"cost --algorithm magic", "magic"},
		{"algorithms --format xml", "xml"},
		{"fields now", "now"},
		{"juggle", "juggle"},
	} {
		t.Run(c.args, func(t *testing.T) {
			var args []string
			for _, a := range strings.Fields(c.args) {
				a = strings.NewReplacer("OUT", out, "IN", in, "MANY", many).Replace(a)
				args = append(args, a)
			}
			r := volleyRun(args...)
			if r.code != exit.Usage {
				t.Errorf("exit %d, want 2", r.code)
			}
			if !strings.Contains(r.stderr, c.want) {
				t.Errorf("%q does not contain %q", r.stderr, c.want)
			}
			if !strings.HasPrefix(r.stderr, "volley: ") || strings.Count(strings.TrimSpace(r.stderr), "\n") > 0 || strings.Contains(r.stderr, "volley: volley:") {
				t.Errorf("%q is not one line after one prefix", r.stderr)
			}
			if r.stdout != "" {
				t.Errorf("printed %q", r.stdout)
			}
			if _, err := os.Lstat(out); err == nil {
				t.Errorf("%s was made, with %v in it", out, listDir(t, out))
				os.RemoveAll(out)
			}
		})
	}
}

// TestOutputDirectory checks what happens to a directory that is not empty.
func TestOutputDirectory(t *testing.T) {
	t.Parallel()
	in, packets := writePackets(t, 10, 20, 30)
	out := filepath.Join(t.TempDir(), "out")
	mustRun(t, "encode", "-o", out, in)
	before := readFile(t, out, manifest.FileName)
	r := volleyRun("encode", "-o", out, in)
	if r.code != exit.Usage || !strings.Contains(r.stderr, "--force") {
		t.Errorf("a second run: exit %d, %s", r.code, r.stderr)
	}
	if !bytes.Equal(before, readFile(t, out, manifest.FileName)) {
		t.Error("the refused run changed the manifest")
	}

	leftover := filepath.Join(out, ".volley-coded.7")
	if err := os.WriteFile(leftover, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "encode", "--force", "-o", out, filepath.Join(in, "packet.00"), filepath.Join(in, "packet.01"))
	if got := strings.Join(listDir(t, out), " "); got != "coded.0.1 coded.1.1 manifest.copy.json manifest.json" {
		t.Errorf("after --force with two packets: %s", got)
	}

	// Inputs that an output would replace.
	for k, name := range []string{"coded.0", "coded.1"} {
		if err := os.WriteFile(filepath.Join(in, name), packets[k], 0o666); err != nil {
			t.Fatal(err)
		}
	}
	r = volleyRun("encode", "-o", in, filepath.Join(in, "coded.0"), filepath.Join(in, "coded.1"))
	if r.code != exit.Usage || !strings.Contains(r.stderr, "is an input") {
		t.Errorf("output over input: exit %d, %s", r.code, r.stderr)
	}
	if got := readFile(t, in, "coded.0"); !bytes.Equal(got, packets[0]) {
		t.Error("the input was changed")
	}
}

// TestDryRun checks that it tells the costs and writes nothing.
func TestDryRun(t *testing.T) {
	t.Parallel()
	in, _ := writePackets(t, 10, 20, 30, 40)
	out := filepath.Join(t.TempDir(), "out")
	text := mustRun(t, "encode", "--dry-run", "--model", "paper", "-o", out, in)
	if !strings.Contains(text, "C1         2 rounds") || !strings.Contains(text, "not checked") {
		t.Errorf("%s", text)
	}
	if _, err := os.Lstat(out); err == nil {
		t.Error("the directory was made")
	}
}
