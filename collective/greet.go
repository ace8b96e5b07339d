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
	"strconv"
	"strings"

	"volley/internal/printable"
	"volley/transport"
)

// Protocol is the version of what ranks say to each other after they have greeted.
const Protocol = 20

// A hello is what every rank tells all others where they differ, whatever it is to do. No later version changes its
// form, nor how it travels, nor what goes before it (see Comm.Greet): so any two versions can say which they are.
type hello struct {
	Magic    [8]byte
	Protocol uint32
	Verb     [20]byte  // what the rank is to do; padded with zeros, as the others are
	Version  [32]byte  // of volley
	Host     [184]byte // for errors
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

// A Term is a setting that all ranks are to have alike, in words of who reads the error.
type Term struct{ Name, Value string }

// TermOf returns a setting with a value that fmt prints.
func TermOf(name string, value any) Term { return Term{name, fmt.Sprint(value)} }

// Digest identifies settings, or what else has a name and a value.
func Digest(terms ...Term) [sha256.Size]byte {
	text := make([]byte, 0, 1<<10)
	for _, x := range terms {
		text = strconv.AppendQuote(strconv.AppendQuote(text, x.Name), x.Value)
	}
	return sha256.Sum256(text)
}

// A DisagreementError says that ranks were started with different settings. All of a run return the same one.
type DisagreementError struct {
	Ranks       []int        // who differ, ascending
	Reference   int          // from this rank, with which the most agree
	Differences []Difference // what they differ in
}

// A Difference is a setting that ranks have in two ways.
type Difference struct {
	Term            // of the first rank that differs; without a value where that says nothing
	Expected string // what DisagreementError.Reference has
}

func (e *DisagreementError) Error() string {
	subject, verb := "rank", "differs"
	if len(e.Ranks) > 1 {
		subject, verb = "ranks", "differ"
	}
	var list []string
	for _, x := range e.Differences {
		if x.Value == "" {
			list = append(list, x.Name)
		} else {
			list = append(list, fmt.Sprintf("%s (%s, not %s)", x.Name, x.Value, x.Expected))
		}
	}
	return fmt.Sprintf("volley: %s %s %s from rank %d in %s: give all the same", subject, Numbers(e.Ranks), verb, e.Reference, strings.Join(list, ", "))
}

// OtherPlan returns the error where a rank sends what another one does not expect.
func OtherPlan(rank, reference int) error {
	return &DisagreementError{Ranks: []int{rank}, Reference: reference, Differences: []Difference{{Term: Term{Name: "plan"}}}}
}

// ExitCode returns 2: who started the ranks has to change something.
func (e *DisagreementError) ExitCode() int { return 2 }

// AtAllRanks reports that all ranks find the error.
func (e *DisagreementError) AtAllRanks() bool { return true }

// MostWords is how many words a rank has room for in a greeting.
const MostWords = 16

// A Greeting is what a rank is to do, by which version of Volley, and with which settings.
type Greeting struct {
	Verb, Version string
	Host          string   // for errors
	Terms         []Term   // are to be the same at all ranks
	Words         []uint64 // may differ, at most MostWords
}

// A declaration is what ranks tell each other once they know that their programs and verbs are the same, but not all else.
type declaration struct {
	Terms []Term
	Words []uint64
}

// Greet compares the greetings of all ranks, which all send before they say anything else, and returns the largest that
// a rank has of each word of its own. It compares digests, in messages of 152 bytes.
//
// Where greetings differ, or impossible says what cannot be of the words, all ranks exchange whole greetings. Greet then
// returns a [*PeerError] where verb, version or words are wrong, and a [*DisagreementError] where terms differ: at all ranks
// the same. Impossible is nil where words cannot be wrong.
func (c *Comm) Greet(ctx context.Context, g Greeting, impossible func(words []uint64) string) ([]uint64, error) {
	sum := Digest(append([]Term{{g.Verb, g.Version}, {"protocol", strconv.Itoa(Protocol)}}, g.Terms...)...)
	id := binary.LittleEndian.Uint64(sum[:])
	words := make([]uint64, greetingWords)
	words[0], words[1] = id, ^id
	copy(words[2:], g.Words)
	if err := c.largest(ctx, words); err != nil {
		return nil, misheard(err)
	}
	largest := words[2:][:len(g.Words)]
	if words[0] == ^words[1] && (impossible == nil || impossible(largest) == "") {
		return largest, nil
	}
	greetings, err := c.Allgather(ctx, sealed(&g))
	if err != nil {
		return nil, misheard(err)
	}
	if _, err = unseal(greetings); err == nil {
		var declarations []declaration
		if declarations, err = AllgatherValues(ctx, c.t, declaration{g.Terms, g.Words}, c.timeout); err == nil {
			err = compare(declarations, impossible)
		}
	}
	var found interface{ AtAllRanks() bool }
	if errors.As(err, &found) && found.AtAllRanks() {
		return nil, c.SharedError(ctx, err)
	}
	return nil, err
}

// compare returns what is wrong where ranks that have said something were not satisfied with the digests.
func compare(declarations []declaration, impossible func(words []uint64) string) error {
	votes, largest := map[[sha256.Size]byte]int{}, 0
	sums := make([][sha256.Size]byte, len(declarations))
	for r, x := range declarations {
		sums[r] = Digest(x.Terms...)
		votes[sums[r]]++
		largest = max(largest, votes[sums[r]])
	}
	if largest < len(declarations) {
		return differing(declarations, slices.IndexFunc(sums, func(sum [sha256.Size]byte) bool { return votes[sum] == largest }))
	}
	for r, x := range declarations {
		if impossible == nil {
			break
		}
		if wrong := impossible(x.Words); wrong != "" {
			return &PeerError{fmt.Sprintf("rank %d says that %s", r, wrong), true}
		}
	}
	return errors.New("volley: the digest of a greeting arrived damaged")
}

// differing returns the error of ranks that differ from one of them. A setting counts that both have.
func differing(declarations []declaration, reference int) error {
	e := &DisagreementError{Reference: reference}
	for r, x := range declarations {
		if !slices.Equal(x.Terms, declarations[reference].Terms) {
			e.Ranks = append(e.Ranks, r)
		}
	}
	for _, want := range declarations[reference].Terms {
		for _, x := range declarations {
			i := slices.IndexFunc(x.Terms, func(term Term) bool { return term.Name == want.Name && term.Value != want.Value })
			if i >= 0 {
				e.Differences = append(e.Differences, Difference{x.Terms[i], want.Value})
				break
			}
		}
	}
	return e
}

// greetingWords are a digest, its complement, and a rank's own words. Where all digests are equal, so are the largest.
const greetingWords = 2 + MostWords

// largest makes each word of a greeting the largest that a rank has.
func (c *Comm) largest(ctx context.Context, words []uint64) error {
	var data []byte
	return c.run(ctx, c.rounds(func(span, distance int) ([]byte, int) {
		if distance == span { // of this round's messages, which are alike, the first
			data = pack(words)
		}
		return data, len(data)
	}, func(distance int, data []byte) error {
		theirs, err := c.unpack(distance, data)
		for i := range theirs {
			words[i] = max(words[i], theirs[i])
		}
		return err
	}))
}

// pack returns words as they go over the wire, and a digest after them.
func pack(words []uint64) []byte {
	data := make([]byte, 0, 8*len(words)+8)
	for _, word := range words {
		data = binary.LittleEndian.AppendUint64(data, word)
	}
	sum := digest(append(data, 'g')) // for greeting
	return append(data, sum[:]...)
}

// unpack returns the words of a message of the rank that is distance above.
func (c *Comm) unpack(distance int, data []byte) ([]uint64, error) {
	words := make([]uint64, greetingWords)
	if _, err := binary.Decode(data, binary.LittleEndian, words); err != nil {
		return nil, err
	}
	if !bytes.Equal(data, pack(words)) {
		return nil, fmt.Errorf("volley: the greeting of rank %d arrived damaged", (c.t.Rank()+distance)%c.t.Size())
	}
	return words, nil
}

// misheard returns the error of an exchange of greetings.
func misheard(err error) error {
	if wrong := new(transport.LengthError); errors.As(err, &wrong) && !errors.As(err, new(*transport.AbortError)) {
		return &PeerError{Reason: fmt.Sprintf("rank %d does not greet as volley does: another program or an old version runs there: start the same one at all ranks", wrong.Src)}
	}
	return err
}

// sealed returns a greeting without its settings as it goes over the wire.
func sealed(g *Greeting) []byte {
	h := hello{Magic: helloMagic, Protocol: Protocol}
	copy(h.Verb[:], g.Verb)
	copy(h.Version[:], g.Version)
	copy(h.Host[:], g.Host)
	greeting, _ := binary.Append(nil, binary.LittleEndian, h) // of fixed size
	sum := digest(greeting[:helloBytes-len(h.Sum)])
	copy(greeting[helloBytes-len(sum):], sum[:])
	return greeting
}

var hostName = regexp.MustCompile(`^[0-9A-Za-z._-]+$`)

// unseal returns the greetings of all ranks, or a [*PeerError].
func unseal(greetings [][]byte) ([]hello, error) {
	hellos := make([]hello, len(greetings))
	for r, greeting := range greetings {
		h := &hellos[r]
		_, err := binary.Decode(greeting, binary.LittleEndian, h)
		switch {
		case err == nil && h.Magic != helloMagic:
			return nil, &PeerError{Reason: fmt.Sprintf("rank %d does not greet as volley does, but with %q: start the same program at all ranks", r, h.Magic[:])}
		case err != nil || len(greeting) != helloBytes || h.Sum != digest(greeting[:helloBytes-len(h.Sum)]):
			return nil, fmt.Errorf("volley: the greeting of rank %d arrived damaged", r)
		}
	}
	version := func(h hello) string { return "volley " + padded(h.Version[:]) }
	numbers, names := make([]string, len(hellos)), make([]string, len(hellos))
	protocols := slices.ContainsFunc(hellos, func(h hello) bool { return h.Protocol != hellos[0].Protocol })
	for r, h := range hellos {
		numbers[r] = fmt.Sprint(r)
		names[r] = numbers[r]
		if host := padded(h.Host[:]); !protocols && hostName.MatchString(host) { // another protocol may have something else there
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
	return hellos, checkSame(hellos, numbers, func(h hello) string { return padded(h.Verb[:]) }, "run the same at all ranks")
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
