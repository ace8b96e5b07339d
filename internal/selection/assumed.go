package selection

import (
	"fmt"
	"time"

	"volley/sim"
	"volley/tune"
)

// Assumed says for a report when and where volley tune has measured the network of a model of
// [Selection.Model]. It is empty where flags or the defaults say what the network is.
func (s *Selection) Assumed(m sim.Model) string {
	r, err := tune.Find(s.Place)
	if err != nil || r == nil || m.Network != r.Network && (m.Network != sim.Network{} || m.Beta != r.Beta() || m.Tau != r.Tau()) {
		return ""
	}
	return fmt.Sprintf("chosen for the network that volley tune measured on %s: %v", r.Date.Format(time.DateOnly), r.Place)
}
