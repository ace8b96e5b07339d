package buffers_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"volley/engine"
	"volley/group/buffers"
	"volley/transport/transporttest"
)

// A process is what one of them keeps in memory.
type process struct {
	lost   bool // it has just been started in the place of one that has died
	state  []byte
	parity []byte
}

// Four processes protect what they compute. One dies, and the one that is started in its place gets its state from the
// parity of the others. Here the processes are goroutines; elsewhere each is one of its own, at any machine.
func Example() {
	const ranks = 4
	processes := make([]*process, ranks)
	for r := range processes {
		processes[r] = &process{state: fmt.Appendf(nil, "what process %d has computed", r)}
	}
	startAll(processes, (*process).protect)
	processes[2] = &process{lost: true}
	startAll(processes, (*process).recover)
	fmt.Printf("%s\n", processes[2].state)
	// Output:
	// lost: [2]
	// what process 2 has computed
}

// protect makes the parity. A program that goes on computing keeps two sets of buffers, and protects them in turns.
func (p *process) protect(ctx context.Context, run engine.Run) error {
	t, err := engine.Join(ctx, run)
	if err != nil {
		return err
	}
	defer t.Close()
	set := buffers.New(t, buffers.Options{Tolerate: 1}, p.state)
	err = set.Protect(ctx)
	p.parity = set.Parity
	return err
}

// recover brings back what was lost.
func (p *process) recover(ctx context.Context, run engine.Run) error {
	t, err := engine.Join(ctx, run)
	if err != nil {
		return err
	}
	defer t.Close()
	set := buffers.New(t, buffers.Options{}, p.state)
	if set.Parity = p.parity; p.lost {
		set.Buffers = nil
	}
	report, err := set.Recover(ctx)
	if err != nil {
		return err
	}
	if p.state = set.Buffers[0]; t.Rank() == 0 {
		fmt.Println("lost:", report.Lost)
	}
	return nil
}

// startAll starts the processes of a run. Whoever starts yours gives each its rank, the address where rank 0 is to
// listen, and the secret: a file that [engine.ReadSecret] reads.
func startAll(processes []*process, verb func(*process, context.Context, engine.Run) error) {
	var group sync.WaitGroup
	errs := make([]error, len(processes))
	secret := engine.NewSecret()
	meet, err := transporttest.FreeAddress() // between machines it is one that you choose
	if err != nil {
		log.Fatal(err)
	}
	for r, p := range processes {
		group.Go(func() {
			errs[r] = verb(p, context.Background(), engine.Run{Rank: r, Size: len(processes), Meet: meet, Secret: secret, Timeout: time.Minute})
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		log.Fatal(err)
	}
}
