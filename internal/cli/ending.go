package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// An ending is how a verb ended in a process.
type ending struct {
	Text  string // the error, empty where there was none
	Heard bool   // another process failed
	Code  int    // for exit
	Set   string // of the process; "": there are none
}

// An ending is told in a record of endingBytes within endingTime.
const (
	endingBytes = 1 << 10
	endingTime  = 3 * time.Second
)

// record returns the ending in endingBytes.
func record(x ending) []byte {
	for {
		text, err := json.Marshal(x)
		if err == nil && len(text) <= endingBytes {
			return append(text, bytes.Repeat([]byte(" "), endingBytes-len(text))...)
		}
		x.Text = x.Text[:len(x.Text)/2]
	}
}

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

// sayings returns what failed, each once and with the ranks where it did, unless at all of a set.
func sayings(all []*ending) (texts []string) {
	var names []string
	for _, x := range all {
		if x != nil && !slices.Contains(names, x.Set) {
			names = append(names, x.Set)
		}
	}
	for _, set := range names {
		texts = append(texts, sayingsOf(set, all)...)
	}
	return texts
}

func sayingsOf(set string, all []*ending) (texts []string) {
	var of []int // its ranks
	for r, x := range all {
		if x == nil && set == "" || x != nil && x.Set == set {
			of = append(of, r)
		}
	}
	ranks := map[string][]int{}
	for _, heard := range []bool{false, true} {
		for _, r := range of {
			x := all[r]
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
		case len(list) == len(of):
		case len(list) == 1:
			texts[i] = fmt.Sprintf("rank %d: %s", list[0], text)
		default:
			texts[i] = fmt.Sprintf("ranks %s: %s", strings.ReplaceAll(strings.Trim(fmt.Sprint(list), "[]"), " ", ", "), text)
		}
		if set != "" {
			texts[i] = set + ": " + texts[i]
		}
	}
	return texts
}
