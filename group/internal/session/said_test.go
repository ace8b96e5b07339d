package session

import (
	"maps"
	"slices"
	"testing"
	"time"

	"volley/group/internal/store"
	"volley/group/protection"
)

// TestSaid checks what ranks compare: the options of all verbs with those of the verb, but for what is each rank's own.
func TestSaid(t *testing.T) {
	t.Parallel()
	type own struct {
		Tolerate int
		Add      []string
	}
	s := &Session{Setup: Setup{Settings: protection.Settings{Memory: 1 << 20, Timeout: time.Second, Believe: "/n1", Names: []string{"a"}, Meta: "/meta", Key: []byte("secret")}}}
	for _, c := range []struct {
		verb Verb
		want []string
	}{
		{Verb{Name: "status"}, []string{"Believe", "Memory", "NoKey", "Verb"}},
		{Verb{Name: "protect", Args: own{Tolerate: 2}}, []string{"Believe", "Memory", "NoKey", "Tolerate", "Verb"}},
		{Verb{Name: "protect", Access: store.Access{Writes: true}, Args: struct{ protection.Settings }{s.Settings}}, []string{"Believe", "Memory", "NoKey", "Verb"}},
	} {
		said, err := s.Said(c.verb)
		if is := slices.Sorted(maps.Keys(said)); err != nil || !slices.Equal(is, c.want) {
			t.Errorf("%s: %q, %v, want %q", c.verb.Name, is, err, c.want)
		}
	}
	said, err := s.Said(Verb{Name: "protect", Args: own{Tolerate: 2}})
	if err != nil || string(said["Believe"]) != `"/n1"` || string(said["Tolerate"]) != "2" || string(said["Verb"]) != `"protect"` {
		t.Errorf("%q, %v", said, err)
	}
}
