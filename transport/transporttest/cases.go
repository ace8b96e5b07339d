package transporttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"volley/transport"
)

// pause is likely to be enough for another rank to come to its wait. No result depends on it.
const pause = 20 * time.Millisecond

// never is the tag of messages that lack their sender or receiver; small, since a transport may have few bits for it.
var never = transport.Tag{Round: 1000}

// Cases returns all tests, each for a group of its own.
func Cases() []Case {
	var list []Case
	for _, c := range []struct {
		name  string
		ranks int
		body  func(endpoint)
	}{
		{"every rank hears every other", 1, everyRank},
		{"parts of all sizes", 2, partSizes},
		{"tags in any order", 2, tagsInAnyOrder},
		{"order within a tag", 2, orderWithinTag},
		{"the last tags within the limits", 2, lastTags},
		{"all pairs on three ports", 1, allPairs},
		{"a sent buffer is free after Wait", 2, bufferFree},
		{"messages of a queue one by one", 2, oneByOne},
		{"several goroutines at once", 2, sideBySide},
		{"many lengths of a tag", 2, lengthsOfTag},
		{"wrong lengths", 2, wrongLengths},
		{"wrong ranks", 1, wrongRanks},
		{"ctx ends a wait", 2, ctxEnds},
		{"ranks say for whom they wait", 3, inquiries},
		{"abort ends waits under way", 2, abortUnderWay},
		{"only the first abort counts", 2, firstAbort},
		{"aborts at once", 2, abortsAtOnce},
		{"what was sent arrives after Close", 2, closeEarly},
	} {
		list = append(list, Case{c.name, c.ranks, func(ctx context.Context, tr transport.Transport) (err error) {
			defer func() {
				switch x := recover().(type) {
				case nil:
				case failure:
					err = x.error
				default:
					panic(x)
				}
			}()
			c.body(endpoint{ctx, tr})
			return nil
		}})
	}
	return list
}

// A failure ends the body of a rank, by a panic in the goroutine of the body.
type failure struct{ error }

func fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

func require(err error) {
	if err != nil {
		fail("%w", err)
	}
}

// mustDo is require that says what failed.
func mustDo(doing string, err error) {
	if err != nil {
		fail("%s: %w", doing, err)
	}
}

func everyRank(d endpoint) {
	if d.Size() < 1 || d.Rank() < 0 || d.Rank() >= d.Size() {
		fail("it is rank %d of %d", d.Rank(), d.Size())
	}
	require(d.meet(transport.Tag{}))
}

// meet trades a message with every other rank.
func (d endpoint) meet(tag transport.Tag) error {
	var messages []message
	for r := range d.Size() {
		if r != d.Rank() {
			// The sizes of the group as both ends see them go into the message.
			messages = append(messages, message{r, d.Rank(), tag, d.Size(), []int{8}}, message{d.Rank(), r, tag, d.Size(), []int{8}})
		}
	}
	return d.trade(messages...)
}

func partSizes(d endpoint) {
	for round, lengths := range [][]int{
		nil,
		{0},
		{1},
		{0, 0},
		{3, 0, 5},
		{0, 4096},
		{1<<16 - 1, 1 << 16, 1<<16 + 1},
		{1<<20 + 1},
		{7, 1<<20 - 3, 0, 11},                // more than a socket takes in before its peer reads
		slices.Repeat([]int{0, 1, 12}, 2000), // more than the 1,024 buffers a system call takes
		nil,
	} {
		mustDo(fmt.Sprintf("parts of %v bytes", lengths), d.pass(transport.Tag{Round: round}, lengths...))
	}
}

func tagsInAnyOrder(d endpoint) {
	const count = 101 // prime, so that i -> 37·i runs through all
	tag := func(i int) transport.Tag { return transport.Tag{Round: i / 7, Port: i % 7} }
	var going []pending
	for i := range count {
		going = append(going, d.post(d.toNext(tag(i), 0, i)))
	}
	var coming []pending
	for i := range count {
		i = 37 * i % count
		coming = append(coming, d.post(d.fromPrev(tag(i), 0, i)))
	}
	slices.Reverse(coming)
	require(d.finish(coming...))
	slices.Reverse(going)
	require(d.finish(going...))
}

func orderWithinTag(d endpoint) {
	const count = 200
	var going []pending
	var coming []pending
	for i := range count {
		if i < count/2 { // the first half of the receives come early
			coming = append(coming, d.post(d.fromPrev(transport.Tag{}, i, 10)))
		}
		going = append(going, d.post(d.toNext(transport.Tag{}, i, 10)))
	}
	for i := count / 2; i < count; i++ {
		coming = append(coming, d.post(d.fromPrev(transport.Tag{}, i, 10)))
	}
	require(d.finish(coming...))
	require(d.finish(going...))
}

// lastTags takes the last tags for which a transport says that it has room.
func lastTags(d endpoint) {
	for _, b := range transport.LimitsOf(d.Transport) {
		if b.Rounds > 0 {
			require(d.pass(transport.Tag{Round: b.Rounds - 1, Port: b.Ports - 1}, 10))
		}
	}
}

func allPairs(d endpoint) {
	for round := range 3 {
		var outgoing, incoming []message
		for port := range 3 {
			tag := transport.Tag{Round: round, Port: port}
			for r := range d.Size() {
				if r != d.Rank() {
					outgoing = append(outgoing, message{d.Rank(), r, tag, 0, []int{10 * r, 17*port + 1}})
					incoming = append(incoming, message{r, d.Rank(), tag, 0, []int{10 * d.Rank(), 17*port + 1}})
				}
			}
		}
		slices.Reverse(incoming) // so that tags matter
		require(d.trade(append(incoming, outgoing...)...))
	}
}

func bufferFree(d endpoint) {
	partner, ok := d.partner()
	if !ok {
		return
	}
	for round, size := range []int{1, 1000, 1 << 18} {
		l := message{min(d.Rank(), partner), max(d.Rank(), partner), transport.Tag{Round: round}, 0, []int{size}}
		if d.Rank() == l.src {
			parts := l.parts()
			require(d.finish(d.start(l, &transport.Transfer{Rank: l.dst, Tag: l.tag, Parts: parts})))
			clear(parts[0])
			parts[0] = nil
			continue
		}
		coming := d.post(l)
		require(d.finish(coming))
		time.Sleep(pause)
		mustDo("changed after Wait", l.check(coming.Parts))
	}
}

// oneByOne has a queue in which messages come one by one, and that is posted to while somebody waits for it.
func oneByOne(d endpoint) {
	const count = 5
	q := d.NewQueue()
	var transfers []*transport.Transfer
	for i := range count {
		for _, n := range []int{10, 1 << 18} {
			t := d.transfer(d.fromPrev(transport.Tag{Round: i}, 0, n))
			t.ID = i
			transfers = append(transfers, t)
			q.Post(t)
		}
	}
	brief, giveUp := context.WithTimeout(d.ctx, 300*time.Millisecond) // by then the wait has begun, with more ranks than cores, too
	defer giveUp()
	if t, err := q.Wait(brief); t != nil || err == nil {
		fail("a transfer is over before it was sent: %v, error %w", t, err)
	}
	require(d.meet(transport.Tag{Round: count})) // no rank sends before all have waited
	wait := func(receive bool, round int) {
		t, err := q.Wait(d.ctx)
		mustDo(fmt.Sprintf("wait for a message of round %d", round), err)
		if t.Receive != receive || t.Tag.Round != round {
			fail("wait for a message of round %d: got that of %v (received: %v)", round, t.Tag, t.Receive)
		}
		if receive {
			require(d.fromPrev(t.Tag, 0, t.Lengths()...).check(t.Parts))
		}
	}
	for i := range count {
		i = count - 1 - i
		going := []pending{d.post(d.toNext(transfers[2*i].Tag, 0, 10)), d.post(d.toNext(transfers[2*i].Tag, 0, 1<<18))}
		for range going {
			wait(true, i)
		}
		require(d.finish(going...))
		require(d.meet(transport.Tag{Round: count + 1 + i}))
	}
	delayed := d.toNext(transport.Tag{Round: 3 * count}, 0, 100)
	coming := d.post(d.fromPrev(delayed.tag, 0, 100))
	defer time.AfterFunc(pause, func() { q.Post(d.transfer(delayed)) }).Stop()
	wait(false, delayed.tag.Round)
	require(d.finish(coming))
}

// sideBySide has goroutines of one rank trade by tags of their own, and one wait for what another sends only later.
func sideBySide(d endpoint) {
	const goroutines, rounds = 4, 25
	errs := make([]error, goroutines+2)
	var running sync.WaitGroup
	for g := range goroutines {
		running.Go(func() {
			for round := range rounds {
				tag := transport.Tag{Round: g*rounds + round, Port: round % 2}
				if errs[g] = d.pass(tag, round, 3000*g); errs[g] != nil {
					return
				}
			}
		})
	}
	tag := transport.Tag{Round: goroutines * rounds}
	running.Go(func() { errs[goroutines] = d.finish(d.post(d.fromPrev(tag, 0, 10))) })
	running.Go(func() {
		time.Sleep(pause)
		errs[goroutines+1] = d.finish(d.post(d.toNext(tag, 0, 10)))
	})
	running.Wait()
	require(errors.Join(errs...))
}

// lengthsOfTag has messages of one tag and all lengths come to receives that are posted before or after: each gets its own.
func lengthsOfTag(d endpoint) {
	const long = 64 << 10 // of which transports may have but a part come unasked
	sizes := []int{3 * long, 1, 2 * long, 2 * long, long + 1, 0, 5 * long}
	for round := range 2 {
		tag := transport.Tag{Round: round}
		var going, coming []pending
		receive := func() {
			for i, size := range sizes {
				coming = append(coming, d.post(d.fromPrev(tag, i, size)))
			}
		}
		if round == 0 {
			receive()
		}
		for i, size := range sizes {
			going = append(going, d.post(d.toNext(tag, i, size)))
		}
		if round == 1 {
			require(d.pass(transport.Tag{Round: 2}))
			receive()
		}
		require(d.finish(append(coming, going...)...))
	}
}

func wrongLengths(d endpoint) {
	for round, c := range []struct{ sent, asked []int }{
		{[]int{10}, []int{9}},
		{[]int{10}, []int{11}},
		{[]int{5, 6}, []int{5}},
		{[]int{5}, []int{5, 6}},
		{[]int{5, 6}, []int{5, 7}},
		{nil, []int{1}},
		{[]int{1}, nil},
		{[]int{1 << 18}, []int{100}},
		{[]int{100}, []int{1 << 18}},
	} {
		tag := transport.Tag{Round: round, Port: 1}
		going := d.post(d.toNext(tag, 0, c.sent...))
		err := d.post(d.fromPrev(tag, 0, c.asked...)).Wait(d.ctx)
		wrong, ok := errors.AsType[*transport.LengthError](err)
		if !ok {
			fail("receive of parts of %v bytes sent as %v: %w", c.asked, c.sent, unwanted(err, "a LengthError"))
		}
		if wrong.Src != d.prev() || wrong.Tag != tag || sum(wrong.Got) != sum(c.sent) || !slices.Equal(wrong.Want, c.asked) {
			fail("receive of parts of %v bytes sent as %v: got %+v", c.asked, c.sent, *wrong)
		}
		// The sender may be told or not, but not left waiting.
		if err := going.Wait(d.ctx); err != nil && d.ctx.Err() != nil {
			fail("send of parts of %v bytes asked for as %v: %w", c.sent, c.asked, err)
		}
		mustDo("after a message of a wrong length", d.pass(tag, 10))
	}
}

func sum(sizes []int) (total int) {
	for _, size := range sizes {
		total += size
	}
	return total
}

func wrongRanks(d endpoint) {
	for _, r := range []int{d.Rank(), -1, d.Size(), d.Size() + 7} {
		for doing, err := range map[string]error{
			"send to":      transport.Send(d.ctx, d, r, never, []byte{1}),
			"receive from": transport.Receive(d.ctx, d, r, never, []byte{1}),
		} {
			switch {
			case err == nil:
				fail("%s rank %d of %d: no error", doing, r, d.Size())
			case d.ctx.Err() != nil:
				fail("%s rank %d of %d: %w", doing, r, d.Size(), err)
			case !strings.Contains(err.Error(), strconv.Itoa(r)):
				fail("%s rank %d of %d: %q does not name the rank", doing, r, d.Size(), err)
			}
		}
	}
	if d.Size() > 1 {
		require(d.pass(transport.Tag{}, 10))
	}
}

func ctxEnds(d endpoint) {
	cause := errors.New("enough")

	cancelled, cancel := context.WithCancelCause(d.ctx)
	defer cancel(nil)
	time.AfterFunc(pause, func() { cancel(cause) })
	expiring, stop := context.WithTimeoutCause(d.ctx, pause, cause)
	defer stop()
	ended, end := context.WithCancelCause(d.ctx)
	end(cause)

	for i, c := range []struct {
		name string
		ctx  context.Context
	}{
		{"cancelled during Wait", cancelled},
		{"with a deadline during Wait", expiring},
		{"ended before Wait", ended},
	} {
		tag := transport.Tag{Round: never.Round + i}
		if err := transport.Receive(c.ctx, d, d.prev(), tag, []byte{1}); !errors.Is(err, cause) {
			fail("receive, ctx %s: %w", c.name, unwanted(err, "the cause of ctx"))
		}
		// A small message may be on its way in a copy.
		tag.Port = 1
		if err := transport.Send(c.ctx, d, d.next(), tag, []byte{1}); err != nil && !errors.Is(err, cause) {
			fail("send, ctx %s: %w", c.name, unwanted(err, "nil or the cause of ctx"))
		}
	}
	mustDo("after a wait that was given up", d.pass(transport.Tag{}, 10))
}

// inquiries has each rank but 0 wait for the next one, and give up, again and again, until rank 0 has heard for whom they wait.
func inquiries(d endpoint) {
	asks, ok := d.Transport.(transport.Inquirer)
	if !ok {
		return
	}
	end, chain := transport.Tag{Round: 1}, transport.Tag{Round: 2}
	next := func(rank int) int { return 1 + rank%(d.Size()-1) }
	if d.Rank() == 0 {
		for r := 1; r < d.Size(); r++ {
			for whom := r; whom != next(r); {
				var err error
				whom, err = asks.Inquire(d.ctx, r)
				mustDo(fmt.Sprintf("ask rank %d, which waits for %d", r, whom), err)
			}
		}
		for r := 1; r < d.Size(); r++ {
			require(d.finish(d.post(message{0, r, end, 0, nil})))
		}
		return
	}
	prev := 1 + (d.Rank()-2+d.Size()-1)%(d.Size()-1)
	coming := d.post(message{next(d.Rank()), d.Rank(), chain, 0, []int{1}})
	ending := d.post(message{0, d.Rank(), end, 0, nil})
	briefly := func(p pending) bool {
		brief, giveUp := context.WithTimeout(d.ctx, 100*time.Millisecond)
		defer giveUp()
		err := p.Wait(brief)
		if brief.Err() == nil || d.ctx.Err() != nil {
			require(err)
		}
		return err == nil
	}
	came, heard := false, false
	for !came && !heard {
		came = briefly(coming)
		heard = briefly(ending)
	}
	if !heard {
		require(d.finish(ending))
	}
	going := d.post(message{d.Rank(), prev, chain, 0, []int{1}})
	if !came {
		require(d.finish(coming))
	}
	require(d.finish(going))
}

// unwanted wraps what a Wait returned, so that a rank which another one's failure stopped is not heard.
func unwanted(err error, want string) error {
	if err == nil {
		return fmt.Errorf("got no error; want %s", want)
	}
	return fmt.Errorf("got error %w; want %s", err, want)
}

// connect passes a message. A rank that is through with it may abort, and close, while others wait, which is no failure.
func (d endpoint) connect() error {
	err := d.pass(transport.Tag{}, 10)
	if _, ok := errors.AsType[*transport.AbortError](err); ok || errors.Is(err, transport.ErrClosed) {
		return nil
	}
	return err
}

func stop(rank int) error { return fmt.Errorf("stop of rank %d", rank) }

// stoppedBy returns an error unless err says that rank aborted with its stop, of which other processes get the text only.
func stoppedBy(rank int, err error) error {
	aborted, ok := errors.AsType[*transport.AbortError](err)
	if !ok {
		return unwanted(err, "an AbortError")
	}
	if aborted.Rank != rank || aborted.Cause == nil || !strings.Contains(aborted.Cause.Error(), stop(rank).Error()) {
		return fmt.Errorf("got an AbortError of rank %d with cause %v; want one of rank %d with cause %v",
			aborted.Rank, aborted.Cause, rank, stop(rank))
	}
	return nil
}

// aborted returns an error unless new transfers say that rank aborted.
func (d endpoint) aborted(rank int) error {
	if err := stoppedBy(rank, transport.Receive(d.ctx, d, d.prev(), never, []byte{1})); err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	if err := stoppedBy(rank, transport.Send(d.ctx, d, d.next(), never, []byte{1})); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	return nil
}

func abortUnderWay(d endpoint) {
	last := d.Size() - 1
	require(d.connect())
	cause := stop(d.Rank())
	if d.Rank() == last {
		defer time.AfterFunc(pause, func() { d.Abort(cause) }).Stop()
	}
	send := d.post(d.toNext(never, 0, 1))
	err := transport.Receive(d.ctx, d, d.prev(), transport.Tag{Round: never.Round, Port: 1}, []byte{1})
	mustDo("receive", stoppedBy(last, err))
	if d.Rank() == last && !errors.Is(err, cause) {
		fail("the error %q does not wrap this rank's cause", err)
	}
	mustDo("send begun before", stoppedBy(last, send.Wait(d.ctx)))
	require(d.aborted(last))
}

func firstAbort(d endpoint) {
	require(d.connect())
	if d.Rank() == 0 {
		d.Abort(stop(0))
		d.Abort(errors.New("second thoughts"))
	}
	require(d.aborted(0))
	d.Abort(stop(d.Rank()))
	mustDo("after a second abort", d.aborted(0))
}

func abortsAtOnce(d endpoint) {
	require(d.connect())
	var aborts sync.WaitGroup
	defer aborts.Wait()
	for range 4 {
		aborts.Go(func() { d.Abort(stop(d.Rank())) })
	}
	err := transport.Receive(d.ctx, d, d.prev(), never, []byte{1})
	first, ok := errors.AsType[*transport.AbortError](err)
	if !ok {
		require(unwanted(err, "an AbortError"))
	}
	require(stoppedBy(first.Rank, err))
	time.Sleep(pause)
	require(d.aborted(first.Rank)) // and no other one, whatever still comes in
}

func closeEarly(d endpoint) {
	if d.Rank() == 0 {
		var going []pending
		for r := 1; r < d.Size(); r++ {
			for i := range 10 {
				going = append(going, d.post(message{0, r, transport.Tag{}, i, []int{10, 1000 * i}}))
			}
		}
		require(d.finish(going...)) // and then it closes
		return
	}
	time.Sleep(pause)
	for i := range 10 {
		require(d.finish(d.post(message{0, d.Rank(), transport.Tag{}, i, []int{10, 1000 * i}})))
	}
}
