// Package memo keeps what was made for a key, and has it made once by those who ask at the same time.
package memo

import (
	"container/list"
	"context"
	"errors"
	"sync"
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
	making   chan struct{} // closed once the one who makes the value has ended; nil while nobody does
	complete bool          // or an error
	value    any
	err      error
}

// Get returns what there is for a key, or what is made now, which takes so many bytes. An error is not kept. Where
// another one makes the value, Get waits until the context ends: the error is then its cause, as where the context ends
// make.
func Get[T any](ctx context.Context, c *Cache, key any, bytes int64, make func() (T, error)) (value T, x *Kept, err error) {
	for {
		x, pending := c.ask(key)
		switch {
		case pending != nil:
			select {
			case <-pending:
			case <-ctx.Done():
				return value, nil, context.Cause(ctx)
			}
			if !c.isMade(x) {
				continue // its context has ended, not this one
			}
		case !c.isMade(x):
			value, err = makeValue(ctx, c, x, bytes, make)
			return value, x, err
		}
		value, _ = x.value.(T)
		return value, x, x.err
	}
}

// ask returns the entry of a key and, where another one makes its value, what is closed when that has ended. Else, unless
// there is a value, the caller is to make it.
func (c *Cache) ask(key any) (x *Kept, pending chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.entries[key]
	if !ok {
		if c.entries == nil {
			c.entries = map[any]*list.Element{}
		}
		element = c.order.PushFront(&Kept{key: key})
		c.entries[key] = element
	}
	c.order.MoveToFront(element)
	x = element.Value.(*Kept)
	if pending = x.making; pending == nil && !x.complete {
		x.making = make(chan struct{})
	}
	return x, pending
}

func (c *Cache) isMade(x *Kept) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return x.complete
}

// makeValue makes a value.
func makeValue[T any](ctx context.Context, c *Cache, x *Kept, bytes int64, make func() (T, error)) (value T, err error) {
	x.err = errUnmade // unless make returns
	defer func() {
		c.mu.Lock()
		x.complete = x.err == nil || ctx.Err() == nil
		close(x.making)
		x.making = nil
		c.add(x, bytes)
		c.mu.Unlock()
	}()
	value, err = make()
	x.value, x.err = value, err
	return value, err
}

var errUnmade = errors.New("memo: the making of a value has panicked")

// Grow says that a value takes so many bytes more, and drops what there is too much of.
func (c *Cache) Grow(x *Kept, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(x, bytes)
}

// add is Grow for who has the lock.
func (c *Cache) add(x *Kept, bytes int64) {
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
