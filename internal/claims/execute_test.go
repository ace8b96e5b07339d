package claims

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"volley/algo"
	"volley/internal/testprogram"
	"volley/plan"
)

// executor is docs/execute.py, which is written after docs/format.md and shares nothing with the program. The test is skipped
// where there is no Python.
func executor(t *testing.T) string {
	t.Helper()
	return testprogram.NeedPython(t, filepath.Join(repository(t), "docs", "execute.py"))
}

// An answer is what a function of Python returns, or the text of its ValueError, by which docs/execute.py refuses.
type answer struct {
	Value   json.RawMessage
	Refused string
}

// each calls a function f(x) of Python, which may use the functions of a script, with each value, all in one process.
func each[T any](t *testing.T, script, function string, values []T) []answer {
	t.Helper()
	var stdin strings.Builder
	for _, v := range values {
		if err := json.NewEncoder(&stdin).Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	out, errs, failed := testprogram.Python(t, "__name__ = None\n"+script+`
import contextlib, io
`+function+`
for line in sys.stdin:
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            answer = {"Value": f(json.loads(line))}
    except ValueError as e:
        answer = {"Refused": str(e)}
    print(json.dumps(answer))
`, stdin.String())
	list := make([]answer, len(values))
	for i, d := 0, json.NewDecoder(strings.NewReader(out)); i < len(list); i++ {
		if err := d.Decode(&list[i]); err != nil || failed {
			t.Fatalf("answer %d: %v, %s", i, err, errs)
		}
	}
	return list
}

// TestExecute runs plans of every algorithm by docs/execute.py, and compares the bytes with those of volley encode: so
// docs/format.md is enough to run a plan.
func TestExecute(t *testing.T) {
	script := executor(t)
	cases := []string{
		"--algorithm exchange:2,3 -k 6 --matrix random:1",                 // pieces
		"--algorithm split -k 8 --matrix random:2 -p 2 --model paper",     // pieces
		"--algorithm helpers -k 9 --sinks 2 --matrix cauchy --field 257",  // pieces
		"-k 5 --sinks 3 --separate --matrix cauchy",                       // apart
		"-k 3 --sinks 7 --separate --matrix random:3 --field 65537",       // apart, more of them
		"--algorithm helpers -k 4 --sinks 3 --separate --matrix random:3", // apart, in pieces
		"-k 12 --sinks 4 --matrix rs:vandermonde --field 257",             // among the sources
		"-k 16 --matrix dft --field 257 --order reversed --model paper",   // of digits
		"-k 16 --matrix dft --field 257 --order any --algorithm dft -p 3 --model paper",
		"-k 12 --matrix vandermonde --field 13 --order any --algorithm draw-and-loose --model paper",
		"-k 16 --matrix dft --field 257 --inverse --algorithm dft --model paper",
		"-k 2 --matrix file:square.csv --field 257",
		"-k 2 --sinks 3 --matrix file:wide.csv",
		"-k 1 --matrix random:1",      // no rounds
		"-k 3 --matrix file:zero.csv", // zeros
	}
	for _, a := range algo.Parts() {
		cases = append(cases, "--algorithm "+a.Name+" "+a.Example)
	}
	// Every field that it knows: the polynomials of all powers of 2, symbols of all sizes.
	for m := 2; m <= 16; m++ {
		cases = append(cases, fmt.Sprintf("-k 3 --matrix random:1 --field 2^%d", m))
	}
	for _, f := range []string{"2", "3", "251", "2147483647", "2^8:0x11b", "2^16:0x1002d", "babybear", "koalabear"} {
		cases = append(cases, "-k 3 --matrix random:1 --field "+f)
	}
	if inLab { // those that volley lacks, alone
		cases = nil
		for _, f := range []string{"goldilocks", "bn254", "bls12-381"} {
			cases = append(cases, "-k 3 --matrix random:1 --field "+f)
		}
	}
	t.Chdir(t.TempDir())
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile("square.csv", []byte("1,2\n3,4\n"), 0o666))
	must(os.WriteFile("wide.csv", []byte("1,2,255\n0,4,7\n"), 0o666))
	must(os.WriteFile("zero.csv", []byte("0,0,1\n0,2,0\n0,3,0\n"), 0o666))
	random := rand.New(rand.NewPCG(1, 2))
	var packets []string
	for i := range 96 {
		data := make([]byte, (5*i+3)%41) // of every length, and one of none
		for j := range data {
			data[j] = byte(random.Uint32())
		}
		packets = append(packets, fmt.Sprintf("packet%02d", i))
		must(os.WriteFile(packets[i], data, 0o666))
	}
	var calls [][]string
	for i, flags := range cases {
		args := strings.Fields(flags)
		k, err := strconv.Atoi(args[slices.Index(args, "-k")+1])
		must(err)
		name, out := fmt.Sprintf("plan%d.json", i), fmt.Sprintf("executed%d", i)
		must(os.WriteFile(name, []byte(volley(t, slices.Concat([]string{"plan", "--json"}, args)...)), 0o666))
		_, errs, code := run(slices.Concat(encodeFlags(args, name), []string{"-o", fmt.Sprintf("encoded%d", i)}, packets[:k])...)
		if code != 0 {
			t.Fatalf("encode %s: %s", flags, errs)
		}
		calls = append(calls, slices.Concat([]string{name, out}, packets[:k]))
	}
	for i, answer := range each(t, script, "f = lambda x: main(*x)", calls) {
		if answer.Refused != "" {
			t.Fatalf("%s: %s", cases[i], answer.Refused)
		}
		want, err := filepath.Glob(fmt.Sprintf("encoded%d/coded.*", i))
		must(err)
		got, err := filepath.Glob(fmt.Sprintf("executed%d/*", i))
		must(err)
		if len(want) == 0 || len(got) != len(want) {
			t.Errorf("%s: %d files, want %d", cases[i], len(got), len(want))
		}
		for j, name := range want {
			if filepath.Base(got[j]) != filepath.Base(name) || read(t, got[j]) != read(t, name) {
				t.Errorf("%s: %s is not what volley encode writes", cases[i], got[j])
			}
		}
	}
}

// encodeFlags returns the flags of volley encode for those of a plan: of a matrix only, as whatever plan gives the same
// bytes, but in any order.
func encodeFlags(args []string, name string) []string {
	list := []string{"encode"}
	if slices.Contains(args, "any") {
		list = append(list, "--plan", name)
	}
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "--algorithm", "--model", "-p":
			i++
		default:
			list = append(list, args[i])
		}
	}
	return list
}

// TestExecuteRefuses changes a plan: neither plan.Decode nor docs/execute.py takes it.
func TestExecuteRefuses(t *testing.T) {
	script := executor(t)
	good := volley(t, "plan", "--json", "-k", "5", "-p", "2", "--model", "paper", "--algorithm", "prepare-and-shoot", "--field", "257", "--matrix", "random:1")
	var texts []string
	for _, change := range [][2]string{
		{`"dst":1,`, ``}, {`"dst":1`, `"Dst":1`}, {`"dst":1`, `"dst":true`}, {`"dst":1`, `"dst":0`}, {`"dst":1`, `"dst":5`}, {`"dst":1`, `"dst":4`},
		{`"dst":1`, `"dst":1,"dst":1`}, {`"dst":1`, `"dst":1,"to":1`}, {`"port":0`, `"port":2`}, {`"port":0`, `"port":1`},
		{`"slots":[0]`, `"slots":[]`}, {`"slots":[0]`, `"slots":[1]`}, {`"slots":[0]`, `"slots":[0,0]`}, {`"slots":[0]`, `"slots":[0.5]`},
		{`"count":1`, `"count":2`}, {`"phases":[`, `"phase":[`}, {`"rounds":1}`, `"rounds":2}`}, {`"proc":1`, `"proc":2`}, {`"version":1`, `"version":2`},
		{`"column":1`, `"column":0`}, {`"column":1`, `"column":5`}, {`"rows":[1]`, `"rows":[5]`}, {`"101"`, `"-101"`}, {`"101"`, `"0101"`}, {`"101"`, `"257"`}, {`"101"`, `101`}, {`[0,"101"]`, `[9,"101"]`},
		{`"field":"257"`, `"field":"256"`}, {`"field":"257"`, `"field":"255"`}, {`"field":"257"`, `"field":"2^8:0x11d"`}, {`"field":"257"`, `"field":"2^8:0x101"`},
		{"\n]}", "\n]}{}"}, {"\n]}", "\n]"},
	} {
		text := strings.Replace(good, change[0], change[1], 1)
		if text == good {
			t.Fatalf("%s is not there", change[0])
		}
		texts = append(texts, text)
	}
	for i, answer := range each(t, script, "def f(x): read(x)", append(texts, good)) {
		taken := i == len(texts)
		if _, err := plan.Decode(strings.NewReader(append(texts, good)[i])); (err == nil) != taken || (answer.Refused == "") != taken {
			t.Errorf("%s: plan.Decode: %v, docs/execute.py: %+v", append(texts, good)[i], err, answer)
		}
	}
}
