package cli

import (
	"fmt"
	"strings"
)

// worst returns the exit code for all: that of the first who failed by himself.
func worst(all []*ending) int {
	code := exitOK
	for _, heard := range []bool{true, false} {
		for r := len(all) - 1; r >= 0; r-- {
			if x := all[r]; x != nil && x.Code != exitOK && x.Heard == heard {
				code = x.Code
			}
		}
	}
	return code
}

// sayings returns what failed, each once and with the ranks where it did, unless at all.
func sayings(all []*ending) []string {
	var texts []string
	ranks := map[string][]int{}
	for _, heard := range []bool{false, true} {
		for r, x := range all {
			if x == nil || x.Text == "" || x.Heard != heard {
				continue
			}
			if ranks[x.Text] == nil {
				texts = append(texts, x.Text)
			}
			ranks[x.Text] = append(ranks[x.Text], r)
		}
		if len(texts) > 0 {
			break // what others only heard of has been said
		}
	}
	for i, text := range texts {
		switch list := ranks[text]; {
		case len(list) == len(all) || len(all) == 1:
		case len(list) == 1:
			texts[i] = fmt.Sprintf("rank %d: %s", list[0], text)
		default:
			texts[i] = fmt.Sprintf("ranks %s: %s", strings.ReplaceAll(strings.Trim(fmt.Sprint(list), "[]"), " ", ", "), text)
		}
	}
	return texts
}
