package local

import (
	"context"
	"errors"
	"testing"

	"volley/transport"
)

// TestAbortUnderWay has rank 0 send when it has heard of an abort, and rank 1 not yet: nothing comes.
func TestAbortUnderWay(t *testing.T) {
	t.Parallel()
	group := New(2)
	abort := &transport.AbortError{Rank: 0, Cause: errors.New("stopped")}
	group[0].group.abort.Store(abort)
	close(group[0].aborted)
	tag := transport.Tag{}
	if err := transport.Send(t.Context(), group[0], 1, tag, []byte{1}); err != error(abort) {
		t.Errorf("send: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := transport.Receive(ended, group[1], 0, tag, []byte{0}); err != error(abort) && !errors.Is(err, context.Canceled) {
		t.Errorf("receive: %v", err)
	}
}
