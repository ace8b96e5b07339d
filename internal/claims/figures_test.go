package claims

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shown adds what the claims of a file quote of each document.
func shown(text string, of map[string][]string) {
	for block := range strings.SplitSeq(text, "\n\n") {
		head, rest, _ := strings.Cut(strings.TrimSpace(block), "\n")
		document, isClaim := strings.CutPrefix(head, "claim ")
		said, _, _ := strings.Cut(rest, "\n$ ")
		if isClaim {
			of[document] = append(of[document], fold(said))
		}
	}
}

// claimFiles returns the files of claims.
func claimFiles(t *testing.T, root string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, "internal", "claims", "testdata", "*.txt"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no claims: %v", err)
	}
	return names
}

// TestFigures checks that a claim shows each cost, such as 6/14 or 12/1.97, that a document
// names. The change log tells history.
func TestFigures(t *testing.T) {
	root := repository(t)
	of := map[string][]string{}
	for _, name := range claimFiles(t, root) {
		shown(read(t, name), of)
	}
	console := regexp.MustCompile("(?s)```console\n.*?```") // which TestFirstMinutes shows
	figure := regexp.MustCompile(`\b[0-9]+/[0-9]+(\.[0-9]+)?\b`)
	for _, document := range documents(t, root) {
		if document == "CHANGELOG.md" {
			continue
		}
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
