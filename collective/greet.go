package collective

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"volley/transport"
)

// Protocol is the version of what ranks say to each other after they have greeted.
const Protocol = 7

// A hello is what every rank tells all others first, whatever it is to do. No later version
// changes its form, nor how it travels (see Comm.Greet): so any two versions can say
// which they are.
type hello struct {
	Magic    [8]byte
	Protocol uint32
	Verb     [20]byte  // what the rank is to do; padded with zeros, as the others are
	Version  [32]byte  // of volley
	Terms    [184]byte // what the verb wants all to know, in the form of the protocol
	Sum      [8]byte   // digest of all before it
}

const helloBytes = 256

var helloMagic = [8]byte([]byte("volley\r\n"))

// A PeerError says that ranks are not the same program, or are not to do the same: then all
// ranks return it. Where one says what Volley does not say, some may only hear that others have
// stopped.
type PeerError struct {
	Reason string
	differ bool // all have greeted, and all find this
}

func (e *PeerError) Error() string { return "volley: " + e.Reason }

// AtAllRanks reports whether all ranks find the error.
func (e *PeerError) AtAllRanks() bool { return e.differ }

// Greet exchanges greetings: what this rank is to do, by which version of Volley, and on which
// terms. All ranks call it, before they say anything else. It returns a [*PeerError] where verb
// or version differ. Else it returns what agree makes of the terms of all, which are as long as
// all terms can be, or its error. All ranks return an error that has a method AtAllRanks which
// says so.
func (c *Comm) Greet(ctx context.Context, verb, version string, terms []byte, agree func(terms [][]byte) ([]byte, error)) ([]byte, error) {
	mine := seal(verb, version, terms)
	conclude := func(records [][]byte) ([]byte, error) {
		all, err := unseal(records)
		if err != nil {
			return nil, err
		}
		return agree(all)
	}
	if c.t.Size() >= Many {
		unsettled := make([]byte, helloBytes) // all are to find out why
		agreed, err := c.reduce(ctx, mine, func(records [][]byte) []byte {
			shared, err := conclude(records)
			if err != nil {
				return unsettled
			}
			return seal(verb, version, shared)
		})
		if err != nil {
			return nil, misheard(err)
		}
		if !bytes.Equal(agreed, unsettled) {
			one, err := unseal([][]byte{agreed})
			if err != nil {
				return nil, err
			}
			return one[0], nil
		}
	}
	records, err := c.Allgather(ctx, mine)
	if err != nil {
		return nil, misheard(err)
	}
	shared, err := conclude(records)
	var found interface{ AtAllRanks() bool }
	if errors.As(err, &found) && found.AtAllRanks() {
		return shared, c.Alike(ctx, err)
	}
	return shared, err
}

// misheard returns the error of an exchange of greetings.
func misheard(err error) error {
	if wrong := new(transport.LengthError); errors.As(err, &wrong) && !errors.As(err, new(*transport.AbortError)) {
		return &PeerError{Reason: fmt.Sprintf("rank %d does not greet as volley does, in %d bytes: another program or an old version runs there: start the same one at all ranks", wrong.Src, helloBytes)}
	}
	return err
}

// seal returns a greeting as it goes over the wire.
func seal(verb, version string, terms []byte) []byte {
	h := hello{Magic: helloMagic, Protocol: Protocol}
	copy(h.Verb[:], verb)
	copy(h.Version[:], version)
	copy(h.Terms[:], terms)
	record, _ := binary.Append(nil, binary.LittleEndian, h) // of fixed size
	sum := digest(record[:helloBytes-len(h.Sum)])
	copy(record[helloBytes-len(sum):], sum[:])
	return record
}

// unseal returns the terms of the greetings of all ranks, or a [*PeerError].
func unseal(records [][]byte) ([][]byte, error) {
	all := make([]hello, len(records))
	terms := make([][]byte, len(records))
	for r, record := range records {
		h := &all[r]
		_, err := binary.Decode(record, binary.LittleEndian, h)
		switch {
		case err == nil && h.Magic != helloMagic:
			return nil, &PeerError{Reason: fmt.Sprintf("rank %d does not greet as volley does, but with %q: start the same program at all ranks", r, h.Magic[:])}
		case err != nil || len(record) != helloBytes || h.Sum != digest(record[:helloBytes-len(h.Sum)]):
			return nil, fmt.Errorf("volley: the greeting of rank %d arrived damaged", r)
		}
		terms[r] = h.Terms[:]
	}
	version := func(h hello) string { return "volley " + padded(h.Version[:]) }
	if slices.ContainsFunc(all, func(h hello) bool { return h.Protocol != all[0].Protocol }) {
		version = func(h hello) string {
			return fmt.Sprintf("volley %s with protocol %d", padded(h.Version[:]), h.Protocol)
		}
	}
	if err := alike(all, version, "install the same version at all ranks"); err != nil {
		return nil, err
	}
	return terms, alike(all, func(h hello) string { return padded(h.Verb[:]) }, "start all ranks with the same verb")
}

// padded returns the text in a field of a greeting.
func padded(field []byte) string { return string(bytes.TrimRight(field, "\x00")) }

// alike returns a [*PeerError] where ranks do not run the same.
func alike(all []hello, runs func(hello) string, advice string) error {
	ranks := map[string][]int{}
	var kinds []string
	for r, h := range all {
		kind := runs(h)
		if ranks[kind] == nil {
			kinds = append(kinds, kind)
		}
		ranks[kind] = append(ranks[kind], r)
	}
	if len(kinds) == 1 {
		return nil
	}
	usual := slices.MaxFunc(kinds, func(a, b string) int { return len(ranks[a]) - len(ranks[b]) })
	var list []string
	for _, kind := range kinds {
		if kind != usual {
			list = append(list, ranksRun(ranks[kind])+" "+kind)
		}
	}
	list = append(list, ranksRun(ranks[usual][:1])+" "+usual) // one stands for all
	return &PeerError{strings.Join(list, ", ") + ": " + advice, true}
}

// ranksRun begins a sentence on some ranks.
func ranksRun(ranks []int) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d runs", ranks[0])
	}
	return fmt.Sprintf("ranks %s run", Numbers(ranks))
}

// Numbers lists numbers, the first ones if there are many.
func Numbers(list []int) string {
	const most = 8
	more := ""
	if len(list) > most+1 {
		list, more = list[:most], fmt.Sprintf(" and %d more", len(list)-most)
	}
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(list), "[]"), " ", ", ") + more
}

// digest tells whether a greeting has arrived whole.
func digest(record []byte) [8]byte {
	sum := sha256.Sum256(record)
	return [8]byte(sum[:8])
}
