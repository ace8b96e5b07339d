package cli

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"volley/internal/exit"
)

// badInput is command lines, and what the error says. What packages refuse by themselves has a row or two.
var badInput = []struct{ args, want string }{
	{"encode -o out", "no packets"},
	{"encode in", "-o DIR"},
	{"encode -o out -k 4 in", "3 packets for 4 processors"},
	{"encode -o out --field 2^99 in", "2^99"},
	{"encode -o out --field bls12-381 in", "volley-lab has it"},
	{"encode -o out --matrix magic in", `"magic": want one of`},
	{"encode -o out --algorithm magic in", `"magic": want auto or one of`},
	{"encode -o out --matrix file:short.csv in", "line 2"},
	{"encode -o out --matrix file:none.csv in", "none.csv"},
	{"encode -o out --matrix file:singular.csv --inverse in", "singular"},
	{"encode -o out --matrix vandermonde --points none in", "none"},
	{"encode -o out --matrix lagrange --omega points in", "line 2: the point 5 is on line 1 already"},
	{"encode -o out --alpha codes --matrix dft in", "dft takes no alpha"},
	{"encode -o out --order up in", `--order "up": want one of natural, reversed, any`},
	{"encode -o out --sinks 0 in", "--sinks \"0\": want a whole number, 1 or more"},
	{"encode -o out --model paper -p 0 in", "0 ports"},
	{"encode -o out --model paper --beta 5 in", "unit"},
	{"encode -o out --model paper --tau fast in", "fast"},
	{"encode -o out missing in", "missing"},
	{"encode -o out empty", "empty"},
	{"encode -o out p{rank}", "-k"},
	{"encode -o out /dev/null in", "not a regular file"},
	{"encode -o out /proc/version in", "packet /proc/version: its length is said to be 0 and it has data"},
	{"encode -o out --memory lots in", "lots"},
	{"encode -o out --memory 7 in", "needs at least"},
	{"encode -o out --check maybe in", "maybe"},
	{"encode -o out --comm pigeon in", "pigeon"},
	{"encode -o out --symbols --field 2^16 odd", "3 bytes"},
	{"encode -o out --symbols --field 257 --matrix random:1 symbols", "symbol 258 at byte 2"},
	{"plan --matrix random:1 -k 16 --max-memory 2", "want 4 or more packets of memory"},
	{"plan --matrix random:1 -k 16 --max-compute 2", "want 16 or more multiply-adds per symbol"},
	{"plan --matrix dft --field 257 -k 16 --algorithm dft --rounds-over 0 --max-memory 4", "no plan keeps the limits"},
	{"plan -k 4 --sinks 1 --inverse", "has no inverse"},
	{"plan --matrix dft --field 257 -k 8 --sinks 2", "dft is square only"},
	{"plan -k 6 --sinks 2 --algorithm universal", "it is for processors that are both"},
	{"plan -k 6 --algorithm sinks", "here every processor is both"},
	{"plan --matrix file:/dev/zero", "/dev/zero"}, // which has no end
	{"plan -k 4 --why --format json", "--why"},
	{"plan -k 4 --size big", "big"},
	{"matrix", "-k"},
	{"matrix --matrix dft -k 8", "want K = 5 or 15, or a field such as 17"},
	{"cost -k 1..9999999", "9999999"},
	{"cost -k 1..65536 -p 1,2", "65536 rows"},
	{"cost -p 0", "0 ports"},
	{"cost -p 1,x", `"x"`},
	{"cost --rounds-over 0..", `"0.."`},
	{"cost --algorithm universal,magic", "magic"},
	{"cost --algorithm universal,dft", "--matrix"},
	{"cost --algorithm ,", `""`},
	{"cost --size 1KiB..1MiB", "--size"},
	{"cost --matrix cauchy --algorithm lagrange,dft -k 4", "no algorithm for this: dft"},
	{"verify --metrics - a", "name "},
	{"protct", "did you mean protect?"},
}

// TestBadInput checks that bad input is exit code 2, that the message names what
// is wrong, once, and that nothing is written.
func TestBadInput(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"in/0": "0123456789", "in/1": "01234567890123456789", "in/2": "012345678901234567890123456789",
		"short.csv": "1,2,3\n4,5\n7,8,9\n", "singular.csv": "1,2,3\n1,2,3\n7,8,9\n",
		"odd": "abc", "symbols": "\x01\x00\x02\x01\xff\xff", // 1, 258, 65535
		"points": "5 6\n5\n", ".volley-x": "",
	} {
		lay(t, name, []byte(text), 0o666)
	}
	must(t, os.Mkdir("empty", 0o777))
	for _, c := range badInput {
		if strings.Contains(c.args, "/proc/") && runtime.GOOS != "linux" {
			continue
		}
		r := volleyRun(strings.Fields(c.args)...)
		if r.code != exit.Usage || r.stdout != "" || !strings.HasPrefix(r.stderr, "volley: ") || strings.Count(r.stderr, "\n") != 1 || strings.Contains(r.stderr, "volley: volley:") {
			t.Errorf("%s: %+v: want exit code 2, and one line after one prefix", c.args, r)
		}
		wants(t, r.stderr, c.want)
		if _, err := os.Lstat("out"); err == nil {
			t.Fatalf("%s: out was made, with %v in it", c.args, listDir(t, "out"))
		}
	}
}
