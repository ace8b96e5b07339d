package ranks

import (
	"slices"
	"testing"
)

// TestWords splits commands as their users mean it.
func TestWords(t *testing.T) {
	t.Parallel()
	for command, want := range map[string][]string{
		"":                                nil,
		" \t":                             nil,
		"ssh":                             {"ssh"},
		" ssh -p  22\n":                   {"ssh", "-p", "22"},
		`ssh -p 22 -i "a b"`:              {"ssh", "-p", "22", "-i", "a b"},
		`ssh -o 'User=it"s' -o X="a  b"c`: {"ssh", "-o", `User=it"s`, "-o", "X=a  bc"},
		`ssh "" x`:                        {"ssh", "", "x"},
		`ssh "a b`:                        nil,
		`ssh it's`:                        nil,
	} {
		if got := words(command); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}
