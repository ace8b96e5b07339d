package session

import (
	"slices"
	"testing"
	"time"

	"volley/collective"
	"volley/group/internal/store"
	"volley/group/protection"
)

// TestSettings checks what ranks compare: the options of all verbs with those of the verb, but for what is each rank's own.
func TestSettings(t *testing.T) {
	t.Parallel()
	type own struct {
		Tolerate int
		Add      []string `json:"-"`
	}
	s := &Session{Setup: Setup{Settings: protection.Settings{Memory: 1 << 20, Timeout: time.Second, Believe: "/n1", Names: []string{"a"}, Meta: "/meta", Key: []byte("secret")}}}
	for _, c := range []struct {
		verb Verb
		want []string
	}{
		{Verb{Name: "status"}, []string{"believe", "memory", "no key", "roots", "step"}},
		{Verb{Name: "protect", Args: own{Tolerate: 2}}, []string{"believe", "memory", "no key", "roots", "step", "tolerate"}},
		{Verb{Name: "protect", Access: store.Access{Writes: true}, Args: struct{ protection.Settings }{s.Settings}}, []string{"believe", "memory", "no key", "roots", "step"}},
	} {
		terms, err := s.OptionTerms(c.verb)
		var is []string
		for _, x := range terms {
			is = append(is, x.Name)
		}
		if err != nil || !slices.Equal(is, c.want) {
			t.Errorf("%s: %q, %v, want %q", c.verb.Name, is, err, c.want)
		}
	}
	terms, err := s.OptionTerms(Verb{Name: "protect", Args: own{Tolerate: 2}})
	for _, want := range []collective.Term{{Name: "believe", Value: `"/n1"`}, {Name: "tolerate", Value: "2"}} {
		if err != nil || !slices.Contains(terms, want) {
			t.Errorf("%q, %v, want %q", terms, err, want)
		}
	}
}
