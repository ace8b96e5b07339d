package verbs

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"volley/internal/cli"
)

// seriesOf returns the texts of a drawing, read strictly.
func seriesOf(t *testing.T, svg string) []string {
	t.Helper()
	var list []string
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok {
			list = append(list, string(text))
		}
	}
}

// TestPlots checks that drawings can be read, and say what they show.
func TestPlots(t *testing.T) {
	universal := []string{"universal", "prepare-and-shoot", "bruck-allgather", "ring-allgather", "direct", "central", "lower bound", "processors, K"}
	for args, want := range map[string][]string{
		"-k 2..40 --plot c1": append([]string{"C1, rounds", "any matrix over 2^8, p = 1, β = 20µs, τ = 0.8 ns/B, packets of 1MiB"}, universal...),
		"-k 2..40":           append([]string{"C2, packets", "lower bound in the fewest rounds"}, universal...),
		"-k 2..40 --plot time --tau 3us --field 257":                           append([]string{"time", "any matrix over 257, p = 1, β = 20µs, τ = 3 µs/B, packets of 1MiB"}, universal...),
		"-k 2..9 --plot ratio -p 1,3 --algorithm universal,direct":             {"universal, p = 1", "universal, p = 3", "direct, p = 1", "direct, p = 3", "lower bound, p = 3"},
		"--field 257 --matrix lagrange -k 16,24,32":                            {"universal", "lagrange", "folded-lagrange", "lower bound"},
		"--field 257 --matrix lagrange -k 64 --plot size":                      {"universal 6/14", "folded-lagrange 7/12", "folded-lagrange 8/10", "size of a packet", "4 KiB"},
		"-k 16 --plot size --size 1KiB..4KiB --algorithm direct":               {"direct 15/15", "1 KiB", "4 KiB"},
		"--matrix cauchy -k 64 --plot size --algorithm cauchy --tau 0.001us":   {"cauchy 7/12", "cauchy 8/10", "from 9.8 KiB: cauchy 8/10"},
		"--matrix cauchy -k 64 --plot size --algorithm cauchy --rounds-over 1": {"cauchy 7/12"},
	} {
		list := seriesOf(t, chartOf(t, args))
		for _, text := range want {
			if !slices.Contains(list, text) {
				t.Errorf("%s: no text %q in %q", args, text, list)
			}
		}
		if strings.Contains(args, "--rounds-over 1") && slices.Contains(list, "cauchy 8/10") {
			t.Errorf("%s: a plan of 8 rounds", args)
		}
	}
}

// chart runs the verb.
func chart(args []string, stdout, stderr io.Writer) int {
	return cli.Main(append([]string{"chart"}, args...), stdout, stderr)
}

// chartOf returns what a command line prints.
func chartOf(t *testing.T, args string) string {
	t.Helper()
	var stdout, stderr strings.Builder
	if code := chart(strings.Fields(args), &stdout, &stderr); code != 0 || stderr.Len() > 0 {
		t.Fatalf("%s: exit %d, %s", args, code, stderr.String())
	}
	return stdout.String()
}

// TestOutput checks that a file is what would be printed, or a PNG by its name, and stays as it was
// where something is wrong.
func TestOutput(t *testing.T) {
	svg, img := filepath.Join(t.TempDir(), "c2.svg"), filepath.Join(t.TempDir(), "c2.png")
	if out := chartOf(t, "-k 2..9 -o "+svg) + chartOf(t, "-k 2..9 -o "+img); out != "" {
		t.Errorf("printed %q", out)
	}
	text, err := os.ReadFile(svg)
	if err != nil || string(text) != chartOf(t, "-k 2..9") {
		t.Errorf("the file is not what would be printed: %v", err)
	}
	data, err := os.ReadFile(img)
	if err != nil {
		t.Fatal(err)
	}
	drawing, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if size := drawing.Bounds().Size(); size.X < 1000 || size.Y < 600 {
		t.Errorf("an image of %v", size)
	}
	for name, want := range map[string]string{"c2.pdf": "%PDF-", "c2.tex": "tikzpicture"} {
		name = filepath.Join(t.TempDir(), name)
		chartOf(t, "-k 2..9 -o "+name)
		if drawn, err := os.ReadFile(name); err != nil || !bytes.Contains(drawn, []byte(want)) {
			t.Errorf("%s: %.40q, %v", name, drawn, err)
		}
	}
	if code := chart([]string{"-k", "1", "-o", svg}, io.Discard, io.Discard); code != 2 {
		t.Errorf("exit %d", code)
	}
	if now, err := os.ReadFile(svg); err != nil || !bytes.Equal(now, text) {
		t.Errorf("the file has become %q, %v", now, err)
	}
	earlier := svg + ".earlier" // another name of the file, which is replaced and not written to
	if err := os.Link(svg, earlier); err != nil {
		t.Fatal(err)
	}
	chartOf(t, "-k 2..5 -o "+svg)
	if was, err := os.ReadFile(earlier); err != nil || !bytes.Equal(was, text) {
		t.Errorf("the file was written to: %.40q, %v", was, err)
	}
	if code := chart([]string{"-k", "4", "-o", filepath.Join(svg, "x.svg")}, io.Discard, io.Discard); code != 1 {
		t.Errorf("a directory that is none: exit %d", code)
	}
}

// TestPoints checks that the points are the times of the model.
func TestPoints(t *testing.T) {
	file := filepath.Join(t.TempDir(), "points.csv")
	chartOf(t, "--plot time -k 16 --algorithm universal --beta 1s --tau 1us --size 1MB -o "+file)
	text, err := os.ReadFile(file)
	if want := "series,\"processors, K\",time\nuniversal,16,10\nlower bound,16,9\n"; err != nil || string(text) != want { // 4 rounds and 6 packets, 5 by the bound
		t.Errorf("%q, %v, want %q", text, err, want)
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--plot c3", "c3"},
		{"--sizes 3", "--sizes"},
		{"-o chart.eps", ".png, .pdf"},
		{"-k 1..65536 -p 1,2", "65536 points"},
		{"--plot size -k 4,8", "one K"},
		{"--plot size -k 4 --size 1MiB", "range"},
		{"--plot size -k 4 --size x..y", "range"},
		{"--size 1KiB..1MiB", "--size"},
		{"--plot time --beta 0 --tau 0", "larger K"},
	} {
		var stdout, stderr strings.Builder
		code := chart(strings.Fields(c.args), &stdout, &stderr)
		if code != 2 || stdout.Len() > 0 || !strings.Contains(stderr.String(), c.want) || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%s: exit %d, printed %q, %q does not contain %q", c.args, code, stdout.String(), stderr.String(), c.want)
		}
	}
	if help := chartOf(t, "--help"); !strings.Contains(help, "--plot WHAT") || strings.Contains(help, "%!") {
		t.Error(help)
	}
}
