package explore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	"volley"
	"volley/field"
	"volley/internal/delay"
	"volley/internal/selection"
	"volley/plan"
	"volley/sim"
	"volley/transport"
	"volley/transport/local"
)

// What a run from the page may take.
const (
	mostRunning  = 64        // processors
	mostPacket   = 16 << 20  // bytes
	mostPackets  = 128 << 20 // bytes of all packets together
	mostMemory   = 256 << 20 // of all processors together, beyond the packets
	mostPaced    = time.Minute
	longestStall = 5 * time.Minute // more than any message takes
)

type runRequest struct {
	Flags flags  `json:"flags"`
	Size  string `json:"size"` // of a packet; "" is that of the flags
	Pace  string `json:"pace"` // β at which messages are slowed; "" and "0": they are not
}

type runAnswer struct {
	Command string         `json:"command"`
	Report  *volley.Report `json:"report"`
	Model   []roundModel   `json:"model"` // of the messages as they are slowed
}

// A sampleRun is a run on random packets that is ready to go.
type sampleRun struct {
	question *question
	plan     plan.Plan
	bytes    int64     // of a packet
	model    sim.Model // of the messages as they are slowed
	paced    bool
}

// run encodes random packets with what the flags select, a rank to a processor. It ends with ctx.
func run(ctx context.Context, request runRequest) (*runAnswer, error) {
	r, err := request.prepare(ctx)
	if err != nil {
		return nil, err
	}
	report, err := r.encode(ctx)
	if err != nil {
		return nil, err
	}
	encodeFlags := maps.Clone(request.Flags)
	delete(encodeFlags, "size") // of the files, for the command line
	command := encodeFlags.command("encode", "-o", "coded", "packet.{rank}")
	return &runAnswer{command, report, modelOf(report.Rounds, report.Pieces, r.model)}, nil
}

// prepare returns what is asked for. The error is a *selection.Error.
func (request runRequest) prepare(ctx context.Context) (*sampleRun, error) {
	selected := flags{}
	maps.Copy(selected, request.Flags)
	if request.Size != "" {
		selected["size"] = request.Size
	}
	q, err := selected.ask(ctx)
	if err != nil {
		return nil, err
	}
	n := int64(q.encoder.Problem().Processors())
	if n > mostRunning {
		return nil, selection.Markf("processors", "%d processors: runs here have %d at most; volley encode takes more", n, mostRunning)
	}
	r := &sampleRun{question: q, model: q.model}
	symbols, symbol := q.model.Symbols(), int64(q.matrix.Field().SymbolBytes())
	switch {
	case symbols < 1:
		return nil, selection.Mark("size", errors.New("packets of no bytes: want 1B or more"))
	case symbols > mostPacket/symbol:
		return nil, selection.Markf("size", "packets have %d MiB at most here, as symbols; volley encode takes longer ones", mostPacket>>20)
	case n*symbols*symbol > mostPackets:
		return nil, selection.Markf("size", "%d packets of that size have more than %d MiB together, as symbols", n, mostPackets>>20)
	}
	r.bytes = symbols * symbol
	if r.plan, err = q.plan(ctx); err != nil {
		return nil, err
	}
	if err := r.slow(request.Pace); err != nil {
		return nil, selection.Mark("pace", err)
	}
	return r, nil
}

// slow makes messages take a β, and τ so much longer as β becomes.
func (r *sampleRun) slow(beta string) error {
	if beta == "" {
		return nil
	}
	seconds, err := selection.ParseDuration("pace", beta)
	if err != nil || seconds == 0 {
		return err
	}
	if r.model.Beta == 0 {
		return errors.New("β is 0, and messages are slowed in proportion to it: set beta, or no pace")
	}
	r.paced = true
	r.model.Tau *= sim.PerByte(seconds / r.model.Beta.Seconds())
	r.model.Beta = time.Duration(seconds * float64(time.Second))
	cost := sim.Count(r.plan)
	cost.C3 = 0 // which takes as long as it takes
	if t := r.model.Time(cost); t > mostPaced {
		return fmt.Errorf("the messages would take %v, and %v is the most: want a smaller one", t.Round(time.Second), mostPaced)
	}
	return nil
}

// delay returns how long a message of packets takes. Those of the agreement on a run and of its check arrive at once.
func (r *sampleRun) delay(t *transport.Transfer) time.Duration {
	if t.Tag.Round < transport.ControlRounds {
		return 0
	}
	return r.model.Beta + time.Duration(float64(t.Bytes())*float64(r.model.Tau)*float64(time.Second))
}

// encode runs all processors. The first failure cancels the others, and is the error.
func (r *sampleRun) encode(ctx context.Context) (*volley.Report, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	q := r.question
	problem := q.encoder.Problem()
	n := problem.Processors()
	encoder, err := volley.NewEncoder(ctx, q.matrix, append(q.Options(q.model),
		volley.WithCheck(true), volley.WithTimeout(longestStall),
		volley.WithMemory(min(volley.DefaultMemory, mostMemory/int64(n))))...)
	if err != nil {
		return nil, err
	}
	packets := make([]volley.Packet, n)
	random := rand.NewChaCha8([32]byte{})
	for k := range packets {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if _, source := problem.Source(k); source {
			packets[k].Data = make([]byte, r.bytes)
			field.FillRandom(q.matrix.Field(), packets[k].Data, random.Uint64)
		}
		if _, sink := problem.Sink(k); sink {
			packets[k].Result = new([]byte)
		}
	}
	reports := make([]*volley.Report, n)
	err = local.Run(ctx, n, func(ctx context.Context, t transport.Transport) (err error) {
		if r.paced {
			t = delay.New(ctx, t, r.delay)
			defer t.Close() // also without an error nothing is to be left
		}
		k := t.Rank()
		if reports[k], err = encoder.Run(ctx, t, packets[k]); err != nil {
			cancel(err) // what is slowed is not to be waited for
		}
		return err
	})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		if aborted := new(transport.AbortError); errors.As(err, &aborted) {
			err = aborted.Cause
		}
		return nil, err
	}
	return volley.Merge(reports), nil
}
