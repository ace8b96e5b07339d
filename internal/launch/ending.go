package launch

import (
	"fmt"
	"slices"
	"strings"

	"volley/internal/exit"
)

// An Ending is how a process of a run has ended.
type Ending struct {
	Text  string // the error, empty where there was none
	Host  string // where
	Heard bool   // another process failed
	Code  int    // for exit
	Set   string // of the process; "": there are none

	Values map[string]float64 `json:",omitempty"` // of metrics, at rank 0 of a set
}

// Worst returns the exit code for all: that of the first who failed by himself.
func Worst(endings []*Ending) int {
	code := exit.OK
	for _, heard := range []bool{true, false} {
		for r := len(endings) - 1; r >= 0; r-- {
			if x := endings[r]; x != nil && x.Code != exit.OK && x.Heard == heard {
				code = x.Code
			}
		}
	}
	return code
}

// A Saying is what failed, at which ranks.
type Saying struct {
	Text  string
	Ranks []int  // none: at all of them, or of the set
	Host  string // of the first one
}

// String names the ranks before the text.
func (x Saying) String() string {
	switch len(x.Ranks) {
	case 0:
		return x.Text
	case 1:
		return fmt.Sprintf("rank %d: %s", x.Ranks[0], x.Text)
	}
	return fmt.Sprintf("ranks %s: %s", strings.ReplaceAll(strings.Trim(fmt.Sprint(x.Ranks), "[]"), " ", ", "), x.Text)
}

// Sayings returns what failed, each once, of one set after the other: what ranks only heard of, where nobody says it.
func Sayings(endings []*Ending) (list []Saying) {
	var sets []string
	failed := map[string]bool{} // one of the set, by itself
	for _, x := range endings {
		if x == nil {
			continue
		}
		if !slices.Contains(sets, x.Set) {
			sets = append(sets, x.Set)
		}
		failed[x.Set] = failed[x.Set] || x.Text != "" && !x.Heard
	}
	for _, set := range sets {
		var sayings []Saying
		size := len(endings)
		for r, x := range endings {
			switch {
			case x == nil:
			case x.Set != set:
				size--
			case x.Text != "" && !(x.Heard && failed[set]):
				i := slices.IndexFunc(sayings, func(y Saying) bool { return y.Text == x.Text })
				if i < 0 {
					i, sayings = len(sayings), append(sayings, Saying{Text: x.Text, Host: x.Host})
				}
				sayings[i].Ranks = append(sayings[i].Ranks, r)
			}
		}
		for _, x := range sayings {
			if len(x.Ranks) == size {
				x.Ranks = nil
			}
			if set != "" {
				x.Text = set + ": " + x.Text
			}
			list = append(list, x)
		}
	}
	return list
}
