package claims

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/reedsolomon"
)

// product multiplies in GF(2^8) by 0x11d, bit by bit.
func product(a, b int) int {
	p := 0
	for ; b > 0; b >>= 1 {
		if b&1 == 1 {
			p ^= a
		}
		if a <<= 1; a > 255 {
			a ^= 0x11d
		}
	}
	return p
}

// power returns base^n in that field.
func power(base, n int) int {
	p := 1
	for range n {
		p = product(p, base)
	}
	return p
}

// entries returns a matrix as volley matrix prints it.
func entries(rows, columns int, at func(i, j int) int) string {
	var b strings.Builder
	for i := range rows {
		for j := range columns {
			fmt.Fprintf(&b, "%s%d", strings.Repeat(",", min(j, 1)), at(i, j))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// theirs returns the parity of klauspost/reedsolomon for unit vectors.
func theirs(t *testing.T, k, r int, options ...reedsolomon.Option) string {
	t.Helper()
	encoder, err := reedsolomon.New(k, r, options...)
	if err != nil {
		t.Fatal(err)
	}
	shards := make([][]byte, k+r)
	for i := range shards {
		shards[i] = make([]byte, k)
		if i < k {
			shards[i][i] = 1
		}
	}
	if err := encoder.Encode(shards); err != nil {
		t.Fatal(err)
	}
	return entries(k, r, func(i, j int) int { return int(shards[k+j][i]) })
}

// TestRecipes compares the matrix of each line of docs/recipes.md with that of the tool that the line names.
func TestRecipes(t *testing.T) {
	want := map[string]string{
		"klauspost/reedsolomon and Backblaze, by default": theirs(t, 10, 4),
		"ISA-L, gf_gen_cauchy1_matrix":                    entries(10, 4, func(i, j int) int { return power(i^(10+j), 254) }),
		"ISA-L, gf_gen_rs_matrix":                         entries(10, 4, func(i, j int) int { return power(power(2, j), i) }),
		"RAID-6, P and Q":                                 entries(10, 2, func(i, j int) int { return []int{1, power(2, i)}[j] }),
		"Jerasure, reed_sol_van":                          theirs(t, 10, 4, reedsolomon.WithJerasureMatrix()),
		"Ceph's plugin isa with m=1: plain XOR":           entries(10, 1, func(int, int) int { return 1 }),
		"PAR1":                                            entries(10, 4, func(i, j int) int { return power(i+1, j) }),
		"PAR2, recovery blocks 0 to 4": "1,2,4,8,16\n1,4,16,64,256\n1,16,256,4096,4107\n1,128,16384,8566,43963\n" +
			"1,256,4107,7099,7166\n1,2048,17132,14332,49095\n", // of par2 0.8.1, for blocks with one word 1 each
		"zfec -k 3 -m 6": "15,45,153\n8,48,224\n6,28,120\n", // of zfec.Encoder(3, 6) 1.5.2
	}
	text := read(t, filepath.Join(repository(t), "docs", "recipes.md"))
	t.Chdir(t.TempDir())
	for name, points := range map[string]string{"omega.txt": "0 1 2", "alpha.txt": "4 8 16"} {
		if !strings.Contains(text, points) {
			t.Errorf("docs/recipes.md does not say the points %s", points)
		}
		if err := os.WriteFile(name, []byte(points), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "volley matrix ") {
			continue
		}
		command, tool, _ := strings.Cut(strings.TrimSpace(line), "# ")
		args, _, err := words(command)
		if err != nil {
			t.Fatal(err)
		}
		stdout, stderr, code := execute(t, args, "")
		var rows strings.Builder
		for row := range strings.Lines(stdout) {
			if row[0] != '#' {
				rows.WriteString(row)
			}
		}
		if code != 0 || want[tool] == "" || rows.String() != want[tool] {
			t.Errorf("%s: exit %d, %s\n%swant that of %q:\n%s", command, code, stderr, rows.String(), tool, want[tool])
		}
		delete(want, tool)
	}
	for tool := range want {
		t.Errorf("no line for %s", tool)
	}
}
