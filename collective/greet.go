package collective

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"volley/internal/printable"
	"volley/transport"
)

// Protocol is the version of what ranks say to each other after they have greeted.
const Protocol = 17

// A hello is what every rank tells all others where they differ, whatever it is to do. No later version changes its
// form, nor how it travels, nor what goes before it (see Comm.Greet): so any two versions can say which they are.
type hello struct {
	Magic    [8]byte
	Protocol uint32
	Verb     [20]byte  // what the rank is to do; padded with zeros, as the others are
	Version  [32]byte  // of volley
	Terms    [184]byte // what the verb wants all to know, in the form of the protocol; of a greeting without, the host
	Sum      [8]byte   // digest of all before it
}

const helloBytes = 256

var helloMagic = [8]byte([]byte("volley\r\n"))

// A PeerError says that ranks are not the same program, or are not to do the same: then all ranks return it. Where one
// says what Volley does not say, some may only hear that others have stopped.
type PeerError struct {
	Reason string
	differ bool // all have greeted, and all find this
}

func (e *PeerError) Error() string { return "volley: " + e.Reason }

// AtAllRanks reports whether all ranks find the error.
func (e *PeerError) AtAllRanks() bool { return e.differ }

// MostWords is how many words a rank has room for in a greeting.
const MostWords = 16

// A Greeting is what a rank is to do, by which version of Volley, and on which terms.
type Greeting struct {
	Verb, Version string
	Terms         []byte   // are to be the same at all ranks
	Words         []uint64 // may differ, at most MostWords; with Terms at most 184 bytes
	Host          string   // for errors, in a greeting without terms and words
}

// Greet compares the greetings of all ranks, which all send before they say anything else, and returns the largest that
// a rank has of each word of its own. It compares digests, in messages of 152 bytes.
//
// Where greetings differ, or agree refuses the words, all ranks exchange whole greetings. Greet then returns a
// [*PeerError] where verb or version differ, and else the error of differ, which is given the terms and words of all,
// and room after them. All ranks return an error that has a method AtAllRanks which says so.
func (c *Comm) Greet(
	ctx context.Context, g Greeting, agree func(words []uint64) bool, differ func(terms [][]byte) error,
) ([]uint64, error) {
	text, err := binary.Append(slices.Clone(g.Terms), binary.LittleEndian, g.Words)
	if err != nil {
		return nil, err
	}
	id := binary.LittleEndian.Uint64(sealed(g.Verb, g.Version, g.Terms)[helloBytes-8:])
	words := make([]uint64, greetingWords)
	words[0], words[1] = id, ^id
	copy(words[2:], g.Words)
	if err := c.largest(ctx, words); err != nil {
		return nil, misheard(err)
	}
	largest := words[2:][:len(g.Words)]
	if words[0] == ^words[1] && agree(largest) {
		return largest, nil
	}
	if len(text) == 0 {
		text = []byte(g.Host)
	}
	greetings, err := c.Allgather(ctx, sealed(g.Verb, g.Version, text))
	if err != nil {
		return nil, misheard(err)
	}
	terms, err := unseal(greetings)
	if err == nil {
		err = differ(terms)
	}
	if err == nil {
		err = errors.New("volley: the digest of a greeting arrived damaged")
	}
	var found interface{ AtAllRanks() bool }
	if errors.As(err, &found) && found.AtAllRanks() {
		return nil, c.SharedError(ctx, err)
	}
	return nil, err
}

// greetingWords are a digest, its complement, and a rank's own words. Where all digests are equal, so are the largest.
const greetingWords = 2 + MostWords

// What words in a message are.
const (
	greets  = 'g' // of a rank that greets
	resumes = 'r' // of one that goes on by an earlier agreement
)

// largest makes each word of a greeting the largest that a rank has.
func (c *Comm) largest(ctx context.Context, words []uint64) error {
	var data []byte
	return c.run(ctx, c.rounds(func(span, distance int) ([]byte, int) {
		if distance == span { // of this round's messages, which are alike, the first
			data = pack(greets, words)
		}
		return data, len(data)
	}, func(distance int, data []byte) error {
		theirs, err := c.unpack(greets, distance, data)
		for i := range theirs {
			words[i] = max(words[i], theirs[i])
		}
		return err
	}))
}

// Resume is run in place of Greet, beside other messages, by a rank that goes on by an earlier agreement, which has the
// id. It lets the rank below know, and finds out whether the rank above does the same by the same agreement. So a rank
// that greets instead finds out, and aborts the group before others have waited for it in vain.
func (c *Comm) Resume(id uint64) transport.SideExchange {
	k, rank := c.t.Size(), c.t.Rank()
	return func(finished *transport.Transfer, err error) ([]*transport.Transfer, error) {
		switch {
		case k == 1 || finished != nil && err == nil && !finished.Receive:
			return nil, nil
		case finished == nil:
			words := make([]uint64, greetingWords)
			words[0] = id
			data := pack(resumes, words)
			c.Bytes += int64(len(data))
			return []*transport.Transfer{ // as the first messages of a greeting
				{Rank: (rank + 1) % k, Parts: [][]byte{make([]byte, len(data))}, Receive: true},
				{Rank: (rank + k - 1) % k, Parts: [][]byte{data}},
			}, nil
		case err != nil:
			return nil, misheard(err)
		}
		theirs, err := c.unpack(resumes, 1, finished.Parts[0])
		if err == nil && theirs[0] != id {
			err = &PeerError{Reason: fmt.Sprintf("ranks %d and %d go on by different agreements: use the same encoders in the same order at all ranks", rank, (rank+1)%k)}
		}
		return nil, err
	}
}

// pack returns words as they go over the wire, and a digest after them.
func pack(kind byte, words []uint64) []byte {
	data := make([]byte, 0, 8*len(words)+8)
	for _, word := range words {
		data = binary.LittleEndian.AppendUint64(data, word)
	}
	sum := digest(append(data, kind))
	return append(data, sum[:]...)
}

// unpack returns the words of a message of the rank that is distance above.
func (c *Comm) unpack(kind byte, distance int, data []byte) ([]uint64, error) {
	words := make([]uint64, greetingWords)
	if _, err := binary.Decode(data, binary.LittleEndian, words); err != nil {
		return nil, err
	}
	if bytes.Equal(data, pack(kind, words)) {
		return words, nil
	}
	rank := c.t.Rank()
	anew, continuing := rank, (rank+distance)%c.t.Size()
	if kind == resumes {
		anew, continuing = continuing, anew
	}
	if bytes.Equal(data, pack(greets+resumes-kind, words)) {
		return nil, &PeerError{Reason: fmt.Sprintf("rank %d begins to agree with the others, and rank %d goes on by an earlier agreement: use the same encoder for a run at all ranks", anew, continuing)}
	}
	return nil, fmt.Errorf("volley: the greeting of rank %d arrived damaged", (rank+distance)%c.t.Size())
}

// misheard returns the error of an exchange of greetings.
func misheard(err error) error {
	if wrong := new(transport.LengthError); errors.As(err, &wrong) && !errors.As(err, new(*transport.AbortError)) {
		return &PeerError{Reason: fmt.Sprintf("rank %d does not greet as volley does: another program or an old version runs there: start the same one at all ranks", wrong.Src)}
	}
	return err
}

// sealed returns a greeting as it goes over the wire.
func sealed(verb, version string, terms []byte) []byte {
	h := hello{Magic: helloMagic, Protocol: Protocol}
	copy(h.Verb[:], verb)
	copy(h.Version[:], version)
	copy(h.Terms[:], terms)
	greeting, _ := binary.Append(nil, binary.LittleEndian, h) // of fixed size
	sum := digest(greeting[:helloBytes-len(h.Sum)])
	copy(greeting[helloBytes-len(sum):], sum[:])
	return greeting
}

var hostName = regexp.MustCompile(`^[0-9A-Za-z._-]+$`)

// unseal returns the terms of the greetings of all ranks, or a [*PeerError].
func unseal(greetings [][]byte) ([][]byte, error) {
	hellos := make([]hello, len(greetings))
	terms := make([][]byte, len(greetings))
	for r, greeting := range greetings {
		h := &hellos[r]
		_, err := binary.Decode(greeting, binary.LittleEndian, h)
		switch {
		case err == nil && h.Magic != helloMagic:
			return nil, &PeerError{Reason: fmt.Sprintf("rank %d does not greet as volley does, but with %q: start the same program at all ranks", r, h.Magic[:])}
		case err != nil || len(greeting) != helloBytes || h.Sum != digest(greeting[:helloBytes-len(h.Sum)]):
			return nil, fmt.Errorf("volley: the greeting of rank %d arrived damaged", r)
		}
		terms[r] = h.Terms[:]
	}
	version := func(h hello) string { return "volley " + padded(h.Version[:]) }
	numbers, names := make([]string, len(hellos)), make([]string, len(hellos))
	protocols := slices.ContainsFunc(hellos, func(h hello) bool { return h.Protocol != hellos[0].Protocol })
	for r, h := range hellos {
		numbers[r] = fmt.Sprint(r)
		names[r] = numbers[r]
		if host := padded(h.Terms[:]); !protocols && hostName.MatchString(host) { // terms are not such text
			names[r] += " (" + host + ")"
		}
	}
	if protocols {
		version = func(h hello) string {
			return fmt.Sprintf("volley %s with protocol %d", padded(h.Version[:]), h.Protocol)
		}
	}
	if err := checkSame(hellos, names, version, "install the same version at all ranks"); err != nil {
		return nil, err
	}
	return terms, checkSame(hellos, numbers, func(h hello) string { return padded(h.Verb[:]) }, "run the same at all ranks")
}

// padded returns the text in a field of a greeting.
func padded(field []byte) string { return string(bytes.TrimRight(field, "\x00")) }

// checkSame returns a [*PeerError] where ranks do not run the same.
func checkSame(hellos []hello, names []string, runs func(hello) string, advice string) error {
	ranks := map[string][]string{}
	var kinds []string
	for r, h := range hellos {
		kind := runs(h)
		if ranks[kind] == nil {
			kinds = append(kinds, kind)
		}
		ranks[kind] = append(ranks[kind], names[r])
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
func ranksRun(names []string) string {
	if len(names) == 1 {
		return fmt.Sprintf("rank %s runs", names[0])
	}
	return fmt.Sprintf("ranks %s run", printable.List(names))
}

// Numbers lists numbers, the first ones if there are many.
func Numbers(list []int) string {
	var names []string
	for _, n := range list {
		names = append(names, fmt.Sprint(n))
	}
	return printable.List(names)
}

// digest tells whether a greeting has arrived whole.
func digest(greeting []byte) [8]byte {
	sum := sha256.Sum256(greeting)
	return [8]byte(sum[:8])
}
