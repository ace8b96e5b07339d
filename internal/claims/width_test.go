package claims

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// proseWidth is how many columns a line of prose in a document may have.
const proseWidth = 120

// address matches what a link leads to, which cannot be broken.
var address = regexp.MustCompile(`\]\([^)]*\)`)

// TestWidth checks that prose can be read in a terminal and in a review. Tables, code and the
// addresses of links may be wider.
func TestWidth(t *testing.T) {
	root := repository(t)
	for _, document := range documents(t, root) {
		fenced := false
		n := 0
		for line := range strings.Lines(read(t, filepath.Join(root, document))) {
			n++
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
			}
			if fenced || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "    ") {
				continue
			}
			if columns := utf8.RuneCountInString(strings.TrimSpace(address.ReplaceAllString(line, "]"))); columns > proseWidth {
				t.Errorf("%s:%d: %d columns, want %d at most", document, n, columns, proseWidth)
			}
		}
	}
}
