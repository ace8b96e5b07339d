package claims

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shown returns for each document what the claims of a file quote of it, and their rows.
func shown(text string, of map[string][]string) {
	for block := range strings.SplitSeq(text, "\n\n") {
		head, rest, _ := strings.Cut(strings.TrimSpace(uncommented(block)), "\n")
		kind, document, _ := strings.Cut(head, " ")
		input, output, _ := strings.Cut(rest, "----\n")
		var said []string
		switch kind {
		case "claim":
			for line := range strings.Lines(input) {
				if !strings.HasPrefix(line, "$ ") && !strings.HasPrefix(line, "where ") {
					said = append(said, line)
				}
			}
			of[document] = append(of[document], fold(strings.Join(said, " ")))
		case "rows":
			for line := range strings.Lines(output) {
				of[document] = append(of[document], fold(line))
			}
		}
	}
}

// uncommented returns lines without those that begin with #.
func uncommented(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		if !strings.HasPrefix(line, "# ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// TestFigures checks that a claim shows each cost, such as 6/14 or 12/1.97, that a document
// names.
func TestFigures(t *testing.T) {
	root := repository(t)
	of := map[string][]string{}
	names, err := filepath.Glob(filepath.Join(root, "internal", "claims", "testdata", "*.txt"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no claims: %v", err)
	}
	for _, name := range names {
		shown(read(t, name), of)
	}
	of["docs/paper.md"] = append(of["docs/paper.md"], numbersThatDiffer(t)...)
	console := regexp.MustCompile("(?s)```console\n.*?```") // which TestFirstMinutes shows
	figure := regexp.MustCompile(`\b[0-9]+/[0-9]+(\.[0-9]+)?\b`)
	for _, document := range documents(t, root) {
		text := fold(console.ReplaceAllString(read(t, filepath.Join(root, document)), ""))
		if figure.MatchString(text) && len(of[document]) == 0 {
			t.Errorf("%s: no claims", document)
		}
		for _, s := range of[document] {
			text = strings.ReplaceAll(text, s, "¶")
		}
		for _, at := range figure.FindAllStringIndex(text, -1) {
			t.Errorf("%s: no claim shows the %s of …%s…", document, text[at[0]:at[1]], strings.ToValidUTF8(text[max(0, at[0]-60):min(len(text), at[1]+20)], ""))
		}
	}
}
