// The program polyshard keeps a ledger of 32 shards at 128 nodes, none of which stores a
// shard: coded states and verification of coded blocks, with encoding and update by
// all-to-all encodes. Byzantine nodes lie in every step, and are found.
//
// In polyshard.go is what one would take from here. The nodes are goroutines of this
// process, and the ledger is compared with one that is kept in one place.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"slices"
	"text/tabwriter"

	"volley"
	"volley/field"
	_ "volley/field/curves"
	"volley/transport"
	"volley/transport/local"
)

func main() {
	log.SetFlags(0)
	seed := flag.Uint64("seed", 1, "of the payments and of who is Byzantine")
	flag.Parse()
	if err := demonstrate(context.Background(), os.Stdout, *seed); err != nil {
		log.Fatal(err)
	}
}

// A Block is what each account of a shard pays and receives in a round.
type Block struct{ Pays, Receives []int64 }

// A Round is a block for each shard.
type Round struct {
	Before   [][]field.Element // balances of the shards
	Blocks   [][]field.Element
	Invalid  []int // shards whose block is invalid
	Rejected []int // and, where there are some, those whose proposer is Byzantine
	Beacon   Beacon
}

// A Ledger is kept in one place: the balances of each shard.
type Ledger [][]int64

// Valid reports whether a shard can have the block.
func (l Ledger) Valid(shard int, b Block) bool {
	var created int64
	for i, pays := range b.Pays {
		if pays < 0 || b.Receives[i] < 0 || pays > l[shard][i] {
			return false
		}
		created += b.Receives[i] - pays
	}
	return created == 0
}

// random returns a valid block.
func (l Ledger) random(shard int, rng *rand.Rand) Block {
	accounts := len(l[shard])
	b := Block{make([]int64, accounts), make([]int64, accounts)}
	for range 2 * accounts {
		from, to := rng.IntN(accounts), rng.IntN(accounts)
		amount := rng.Int64N(l[shard][from] - b.Pays[from] + 1)
		b.Pays[from] += amount
		b.Receives[to] += amount
	}
	return b
}

// symbols returns the block for the scheme. Where an account pays more than it has, the
// lowest "bit" of what it keeps is a negative number, so that all sums are right.
func (b Block) symbols(f field.Field, balances []int64) []field.Element {
	var keeps []int64
	for i, pays := range b.Pays {
		keeps = append(keeps, balances[i]-pays)
	}
	var symbols []field.Element
	for _, amount := range slices.Concat(b.Pays, b.Receives, keeps) {
		bits := make([]field.Element, Bits)
		if amount < 0 {
			bits[0] = f.Sub(field.Element{}, field.Code(uint64(-amount)))
		} else {
			for i := range bits {
				bits[i] = field.Code(uint64(amount) >> i & 1)
			}
		}
		symbols = append(symbols, bits...)
	}
	return symbols
}

// play returns some rounds, and the ledger after them. In every second round one shard
// proposes to pay more than it has, and another to create coins. The liars lie then, so that
// blocks that they have proposed are rejected, too.
func play(f field.Field, rng *rand.Rand, shards, accounts, rounds int, liars []int) (list []Round, l Ledger) {
	l = make(Ledger, shards)
	for i := range l {
		for range accounts {
			l[i] = append(l[i], rng.Int64N(1<<Bits/int64(accounts)))
		}
	}
	sampler := field.NewSampler(f)
	for n := range rounds {
		seed := rng.Uint64()
		r := Round{Beacon: func(draw int) field.Element {
			return sampler.Draw(rand.New(rand.NewPCG(seed, uint64(draw))).Uint64)
		}}
		bad := rng.Perm(shards)[:2]
		var blocks []Block
		for i := range l {
			b := l.random(i, rng)
			if n%2 == 1 && i == bad[0] {
				b.Pays[0] += l[i][0] + 1
				b.Receives[1] += l[i][0] + 1
			}
			if n%2 == 1 && i == bad[1] {
				b.Receives[0]++
			}
			r.Before = append(r.Before, coins(l[i]))
			r.Blocks, blocks = append(r.Blocks, b.symbols(f, l[i])), append(blocks, b)
			if !l.Valid(i, b) {
				r.Invalid = append(r.Invalid, i)
			}
		}
		for i, b := range blocks {
			if slices.Contains(r.Invalid, i) || len(r.Invalid) > 0 && slices.Contains(liars, i) {
				r.Rejected = append(r.Rejected, i)
				continue
			}
			for account := range b.Pays {
				l[i][account] += b.Receives[account] - b.Pays[account]
			}
		}
		list = append(list, r)
	}
	return list, l
}

func coins(balances []int64) []field.Element {
	symbols := make([]field.Element, len(balances))
	for i, b := range balances {
		symbols[i] = field.Code(uint64(b))
	}
	return symbols
}

// simulate runs all nodes. lies returns the lie of a node in a round, or
// nil. It returns the verdict of each round, in which all nodes agree, and what all nodes store.
func simulate(ctx context.Context, s *Scheme, rounds []Round, lies func(round, node int) Lie) ([]*Verdict, [][]field.Element, error) {
	verdicts, states := make([][]*Verdict, s.Nodes), make([][]field.Element, s.Nodes)
	err := local.Run(ctx, s.Nodes, func(ctx context.Context, t transport.Transport) error {
		w := t.Rank()
		var balances, block []field.Element
		if w < s.Shards {
			balances = rounds[0].Before[w]
		}
		node, err := s.Genesis(ctx, t, balances)
		if err != nil {
			return err
		}
		for n, r := range rounds {
			if w < s.Shards {
				block = r.Blocks[w]
			}
			node.Lie = lies(n, w)
			v, err := s.Round(ctx, t, node, block, r.Beacon)
			if err != nil {
				return fmt.Errorf("round %d: %w", n+1, err)
			}
			verdicts[w] = append(verdicts[w], v)
		}
		states[w] = node.State
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	for n, v := range verdicts[0] {
		var encoded, reencoded []*volley.Report
		for w := range verdicts {
			other := verdicts[w][n]
			if !slices.Equal(other.Liars, v.Liars) || !slices.Equal(other.Rejected, v.Rejected) {
				return nil, nil, fmt.Errorf("round %d: nodes 0 and %d have different verdicts", n+1, w)
			}
			if encoded = append(encoded, other.Encoded); other.Reencoded != nil {
				reencoded = append(reencoded, other.Reencoded)
			}
		}
		if v.Encoded = volley.Merge(encoded); len(reencoded) > 0 {
			v.Reencoded = volley.Merge(reencoded)
		}
	}
	return verdicts[0], states, nil
}

// collude returns the lies of nodes that agree on the verdicts that they pretend: as if all
// blocks were valid. Where all are valid, and in all other steps, these nodes say anything.
func collude(s *Scheme, rounds []Round, liars []int, rng *rand.Rand) func(round, node int) Lie {
	f := s.Field
	lies := make([]map[int]field.Element, len(rounds)) // by round and node: what is added to the verdict
	sampler := field.NewSampler(f)
	for n, r := range rounds {
		lies[n] = map[int]field.Element{}
		for _, w := range liars {
			if len(r.Invalid) == 0 {
				lies[n][w] = sampler.Draw(rng.Uint64)
			}
			for _, i := range r.Invalid {
				truth := s.verify(r.Before[i], r.Blocks[i], r.Beacon(0))
				lies[n][w] = f.Sub(lies[n][w], f.Mul(truth, s.code.At(i, w)))
			}
		}
	}
	return func(round, node int) Lie {
		lie, ok := lies[round][node]
		if !ok {
			return nil
		}
		return func(_ Step, truth []field.Element) []field.Element {
			said := slices.Clone(truth)
			for i := range said {
				said[i] = f.Add(said[i], lie)
			}
			return said
		}
	}
}

func demonstrate(ctx context.Context, w io.Writer, seed uint64) error {
	const shards, nodes, accounts, rounds = 32, 128, 16, 4
	f, err := field.Parse("goldilocks")
	if err != nil {
		return err
	}
	s, err := NewScheme(f, shards, nodes, accounts, volley.WithPaperModel(1, volley.DefaultBeta, volley.DefaultTau))
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	byzantine := rng.Perm(nodes)[:s.Tolerates()]
	slices.Sort(byzantine)
	fmt.Fprintf(w, "%d shards of %d accounts over %s, %d nodes; %d may be Byzantine\n", shards, accounts, f.Name(), nodes, s.Tolerates())

	var verdicts []*Verdict
	for _, liars := range [][]int{nil, byzantine} {
		list, after := play(f, rand.New(rand.NewPCG(seed, 1)), shards, accounts, rounds, liars)
		var states [][]field.Element
		if verdicts, states, err = simulate(ctx, s, list, collude(s, list, liars, rng)); err != nil {
			return err
		}
		fmt.Fprintf(w, "\n%d Byzantine nodes %v\n", len(liars), liars)
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "  round\tinvalid blocks\trejected\tliars found")
		for n, v := range verdicts {
			found := fmt.Sprint(len(v.Liars))
			if slices.Equal(v.Liars, liars) && len(liars) > 0 {
				found = fmt.Sprintf("all %d, by name", len(liars))
			}
			if !slices.Equal(v.Rejected, list[n].Rejected) {
				return fmt.Errorf("round %d: rejected %v, want %v", n+1, v.Rejected, list[n].Rejected)
			}
			fmt.Fprintf(table, "  %d\t%v\t%v\t%s\n", n+1, list[n].Invalid, v.Rejected, found)
		}
		table.Flush()

		for _, l := range liars { // they lie to the audit, too
			states[l] = make([]field.Element, accounts)
		}
		balances, wrong, err := s.Audit(states)
		if err != nil {
			return err
		}
		for i, b := range balances {
			if !slices.Equal(b, coins(after[i])) {
				return fmt.Errorf("shard %d has %v coins, want %v", i, b, after[i])
			}
		}
		fmt.Fprintf(w, "  audit: the ledger of one place; %d nodes store something else\n", len(wrong))
	}

	fmt.Fprintln(w, "\nA round, for each phase:")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  phase\tsymbols of a packet\trounds\tpackets\tby")
	phase := func(name string, r *volley.Report) {
		fmt.Fprintf(table, "  %s\t%d\t%d\t%.4g\t%s, %d sources, %d sinks\n", name, r.SymbolsPerPacket, r.C1, r.C2Packets, r.Algorithm, r.K, r.Processors)
	}
	phase("encode blocks", verdicts[1].Encoded)
	fmt.Fprintf(table, "  exchange verdicts\t1\t\t%d\tevery verdict to every node\n", nodes-1)
	phase("encode changes of valid blocks", verdicts[1].Reencoded)
	fmt.Fprintf(table, "  exchange checks of these\t2\t\t%d\ttwo symbols to every node\n", nodes-1)
	fmt.Fprintf(table, "  instead of encode\t%d\t\t%d\tevery block to every node\n", s.blockSymbols(), shards)
	table.Flush()
	fmt.Fprintf(w, "A node stores %d balances of %d, and verifies one block instead of %d.\n", accounts, shards*accounts, shards)
	return nil
}
