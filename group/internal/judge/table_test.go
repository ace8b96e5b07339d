package judge

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestRows has nodes for each row of the tables, by the letters of stateOf: the row applies, and no earlier one. Every row
// has an example, and its sentence is in the document.
func TestRows(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	document := strings.Join(strings.Fields(string(text)), " ")
	examples := []struct {
		letters    string // of nodes
		believe    string
		generation int64    // whose claim and doubt are meant
		want       []string // rows: of claims, contests and doubts; "": there is nothing that they could be about
	}{
		{"111", "", 1, []string{"committed", "one is in force", "none"}},
		{"291", "0", 2, []string{"alone", "an operator says whom to believe", ""}},
		{"291", "", 9, []string{"alone", "nodes contradict each other", ""}},
		{"dNN", "", 1, []string{"alone", "a newer one cannot be read", ""}},
		{"pp1", "", 2, []string{"too few", "one is in force", "none"}},
		{"ppp", "", 2, []string{"complete", "one is in force", "none"}},
		{"qqj", "", 1, []string{"too few", "none was committed", "none"}},
		{"1LL", "", 1, []string{"too many are lost", "one is in force", "none"}},
		{"111L", "", 1, []string{"of another number of nodes", "other directories", ""}},
		{"qFq", "", 1, []string{"complete", "one is in force", "another one is in force if they lack it"}},
		{"ppF", "", 1, []string{"committed", "one is in force", "another one is in force if they hold it"}},
		{"ee1", "", 1, []string{"too many are lost", "one is in force", "none"}},
		{"eee", "", 1, []string{"", "none was committed", "nobody else holds it"}},
		{"2dd", "", 2, []string{"too many are lost", "one is in force", "none"}}, // and not the older one
	}
	seen := map[string]bool{}
	for _, x := range examples {
		states := statesOf(x.letters[:3], 1)
		for n := 3; n < len(x.letters); n++ {
			states = append(states, stateOf(x.letters[n], n, 3, 1))
		}
		c, err := newContest(states, x.believe)
		if err != nil {
			t.Fatalf("%s: %v", x.letters, err)
		}
		rows := []string{"", rowOf(contests, c).name, ""}
		if claim := c.find(func(c *claim) bool { return c.Generation == x.generation }); claim != nil {
			rows[0] = rowOf(claims, claim).name
		}
		if current, err := decideKnown(states, x.believe); err == nil && x.believe == "" {
			for _, d := range doubtsOf(current, states) {
				if d.Generation == x.generation {
					rows[2] = rowOf(doubts, d).name
				}
			}
		}
		if !slices.Equal(rows, x.want) {
			t.Errorf("%s, believe %q, generation %d: %q: want %q", x.letters, x.believe, x.generation, rows, x.want)
		}
		for i, name := range rows {
			seen[[]string{"claims: ", "contests: ", "doubts: "}[i]+name] = true
		}
	}
	check := func(table, name, sentence string) {
		if !seen[table+name] {
			t.Errorf("%s%s: no example", table, name)
		}
		if !strings.Contains(document, sentence) {
			t.Errorf("%s%s: %q is not in docs/format.md", table, name, sentence)
		}
	}
	for _, r := range claims {
		check("claims: ", r.name, r.says)
	}
	for _, r := range contests {
		check("contests: ", r.name, r.says)
	}
	for _, r := range doubts {
		check("doubts: ", r.name, r.says)
	}
}
