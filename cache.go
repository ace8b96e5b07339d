package volley

import (
	"container/list"
	"errors"
	"sync"

	"volley/algo"
	"volley/matrix"
	"volley/sim"
	"volley/transport"
)

// DefaultCacheBytes is the default of [SetCacheBytes].
const DefaultCacheBytes = 64 << 20

// planned is what the encoders of this process share.
var planned = &cache{most: DefaultCacheBytes}

// SetCacheBytes bounds the memory, as far as it is counted, of what this process keeps for encoders to come: problems,
// plans, and the programs of ranks. An encoder with an equal problem, options and network as an earlier one has nothing
// to plan or compile then. What was used least recently goes first; 0 keeps nothing. Encoders keep what they use
// themselves all the same. Only matrices that [matrix.Fixed] are shared. It may be called at any time.
func SetCacheBytes(n int64) {
	planned.mu.Lock()
	defer planned.mu.Unlock()
	planned.most = n
	planned.evict()
}

// A cache keeps what was made for a key, up to so many bytes.
type cache struct {
	mu          sync.Mutex
	most, bytes int64
	entries     map[any]*list.Element // of order
	order       list.List             // of *cached, the last used ones first
}

// A cached value is made once, by the first who asks for it.
type cached struct {
	key   any
	bytes int64
	once  sync.Once
	value any
	err   error
}

// get returns what there is for a key, or what is made now, which takes so many bytes. An error is not kept.
func get[T any](c *cache, key any, bytes int64, make func() (T, error)) (T, *cached, error) {
	c.mu.Lock()
	at, ok := c.entries[key]
	if !ok {
		if c.entries == nil {
			c.entries = map[any]*list.Element{}
		}
		at = c.order.PushFront(&cached{key: key})
		c.entries[key] = at
	}
	c.order.MoveToFront(at)
	c.mu.Unlock()
	x := at.Value.(*cached)
	x.once.Do(func() {
		x.err = errUnmade // unless make returns
		defer func() { c.grow(x, bytes) }()
		x.value, x.err = make()
	})
	value, _ := x.value.(T)
	return value, x, x.err
}

var errUnmade = errors.New("volley: planning has panicked")

// grow says that a value takes so many bytes more, and drops what there is too much of.
func (c *cache) grow(x *cached, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.entries[x.key]
	if !ok || at.Value != x {
		return // dropped
	}
	x.bytes += bytes
	c.bytes += bytes
	if x.err != nil {
		c.drop(at)
	}
	c.evict()
}

func (c *cache) evict() {
	for c.bytes > max(0, c.most) {
		c.drop(c.order.Back())
	}
}

func (c *cache) drop(at *list.Element) {
	x := c.order.Remove(at).(*cached)
	delete(c.entries, x.key)
	c.bytes -= x.bytes
}

// problemKey is what a problem follows from.
type problemKey struct {
	field, matrix   string
	rows, columns   int
	separate, whole bool
	ports           int
	order           algo.Order
	limits          algo.Limits
}

type (
	choiceKey struct { // of a *choice
		problemKey
		algorithm string
		model     sim.Model
		tags      transport.Limits
	}
	entriesKey struct{ problemKey } // of a matrix
)

// keyOf returns the key of a problem; shared is false where no other encoder may have its plans.
func keyOf(p *algo.Problem) (key problemKey, shared bool) {
	a := p.Matrix
	if !matrix.Fixed(a) {
		return key, false
	}
	return problemKey{a.Field().Name(), a.ID(), a.Rows(), a.Cols(), p.Separate, p.Whole, p.Ports, p.Order, p.Limits}, true
}
