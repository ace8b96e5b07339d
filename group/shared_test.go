package group

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"volley"
	"volley/collective"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/protection"
	"volley/internal/disk"
	"volley/internal/disk/disktest"
	"volley/transport"
)

// TestSharedDirectory gives ranks 0 and 2 one directory: both are named, before anything is
// written, and also where the locks of its file system do not show it.
func TestSharedDirectory(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]disk.Disk{"locks": disk.OS, "no locks": disktest.Lockless{Disk: disk.OS}} {
		dirs := []string{t.TempDir(), t.TempDir()}
		for r, err := range errorsAt(t, 3, func(ctx context.Context, tr transport.Transport) error {
			_, err := overSetup(tr, []string{dirs[tr.Rank()%2]}, session.Setup{Disk: d}).Protect(ctx, ProtectOptions{Tolerate: 1})
			return err
		}) {
			if err == nil || !strings.Contains(err.Error(), "ranks 0 and 2 have one directory, "+dirs[0]+": give each its own") || !IsInputError(err) {
				t.Errorf("%s: rank %d: %v", name, r, err)
			}
		}
		for _, dir := range dirs {
			if list, err := filepath.Glob(dir + "/.volley/[^l]*"); err != nil || list != nil {
				t.Errorf("%s: %q was written, %v", name, list, err)
			}
		}
	}
}

// TestFalsePeers lets rank 2 say what cannot be: it is named, and nobody panics.
func TestFalsePeers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, begin, states string // what it says in JSON
		want                string
	}{
		{"no number of nodes", `{"Nodes":-1}`, ``, "rank 2 says that it has -1 nodes"},
		{"too many nodes", `{"Nodes":9000000000000000000}`, ``, "rank 2 says that it has 9000000000000000000 nodes"},
		{"no JSON", `{"Nodes":`, ``, "rank 2 says what does not fit here"},
		{"no states", ``, `[]`, "rank 2 says 0 things of its 1 nodes"},
		{"a state that is none", ``, `[null]`, "rank 2 says 1 things of its 1 nodes, or nothing of one"},
	} {
		for r, err := range errorsAt(t, 3, func(ctx context.Context, tr transport.Transport) (err error) {
			if tr.Rank() < 2 {
				_, err = Join(tr, []string{t.TempDir()}, protection.Settings{Timeout: time.Minute}).Verify(ctx, VerifyOptions{})
				return err
			}
			tr.Abort(falsePeer(ctx, tr, c.begin, c.states))
			return errors.New(c.want)
		}) {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: rank %d: %v, want %s", c.name, r, err, c.want)
			}
		}
	}
}

// falsePeer takes part in a verify up to the states of the nodes.
func falsePeer(ctx context.Context, tr transport.Transport, begin, states string) error {
	o := session.Defaulted(session.Setup{Settings: protection.Settings{Timeout: time.Minute}})
	settings, err := (&session.Session{Setup: o}).OptionTerms(session.Verb{Name: "verify", Args: VerifyOptions{1, 1}})
	if err != nil {
		return err
	}
	if err := volley.Greet(ctx, tr, "verify", time.Minute, settings...); err != nil {
		return err
	}
	text, err := json.Marshal(session.Terms{Nodes: 1, Run: "run", MAC: store.MacOf(nil, store.OfRun, []byte("run")), Network: o.Network})
	if err != nil {
		return err
	}
	if begin != "" {
		text = []byte(begin)
	}
	if _, err := collective.Allgatherv(ctx, tr, text, time.Minute); err != nil {
		return err
	}
	s := &session.Session{T: tr, Setup: o}
	s.Barrier(ctx) // of terms that are wrong, or of nodes that have node 0
	if states != "" {
		says := func(context.Context) (json.RawMessage, error) { return json.RawMessage(states), nil }
		if _, err := collective.SteadyValues(ctx, tr, time.Minute, says); err != nil {
			return err
		}
	}
	return s.Barrier(ctx)
}
