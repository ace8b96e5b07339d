// Package memo keeps what was made for a key, and has it made once by those who ask at the same time.
package memo

import (
	"container/list"
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/semaphore"
)

// A Cache keeps values, up to so many bytes: what was used least recently goes first. The zero Cache keeps none, but has one
// who asks wait for another that makes the value.
type Cache struct {
	mu           sync.Mutex
	limit, bytes int64
	entries      map[any]*list.Element // of order
	order        list.List             // of *Kept, the last used ones first
}

// New returns a cache of so many bytes.
func New(limit int64) *Cache { return &Cache{limit: limit} }

// SetMost changes how many bytes it keeps.
func (c *Cache) SetMost(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = n
	c.evict()
}

// A Kept value is made once, by the first who asks for it. Where a context ends the making, the next who asks makes it.
type Kept struct {
	key      any
	bytes    int64
	turn     *semaphore.Weighted // of who makes or looks at what follows
	complete bool
	value    any
	err      error
}

// Get returns what there is for a key, or what is made now, which takes so many bytes. An error is not kept. Where
// another one makes the value, Get waits until the context ends: the error is then its cause, as where the context ends
// make.
func Get[T any](ctx context.Context, c *Cache, key any, bytes int64, make func() (T, error)) (value T, x *Kept, err error) {
	x = c.entry(key)
	if x.turn.Acquire(ctx, 1) != nil {
		return value, nil, context.Cause(ctx)
	}
	defer x.turn.Release(1)
	if x.complete {
		value, _ = x.value.(T)
		return value, x, x.err
	}
	x.err = errUnmade // unless make returns
	defer func() {
		if x.complete = x.err == nil || ctx.Err() == nil; x.complete {
			c.Grow(x, bytes)
		}
	}()
	value, err = make()
	x.value, x.err = value, err
	return value, x, err
}

// entry returns that of a key, which is now the last used.
func (c *Cache) entry(key any) *Kept {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.entries[key]
	if !ok {
		if c.entries == nil {
			c.entries = map[any]*list.Element{}
		}
		element = c.order.PushFront(&Kept{key: key, turn: semaphore.NewWeighted(1)})
		c.entries[key] = element
	}
	c.order.MoveToFront(element)
	return element.Value.(*Kept)
}

var errUnmade = errors.New("memo: the making of a value has panicked")

// Grow says that a value takes so many bytes more, and drops what there is too much of.
func (c *Cache) Grow(x *Kept, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.entries[x.key]
	if !ok || element.Value != x {
		return // dropped
	}
	x.bytes += bytes
	c.bytes += bytes
	if x.err != nil {
		c.drop(element)
	}
	c.evict()
}

func (c *Cache) evict() {
	for c.bytes > max(0, c.limit) {
		c.drop(c.order.Back())
	}
}

func (c *Cache) drop(element *list.Element) {
	x := c.order.Remove(element).(*Kept)
	delete(c.entries, x.key)
	c.bytes -= x.bytes
}
