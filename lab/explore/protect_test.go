package explore

import (
	"errors"
	"strings"
	"testing"

	"volley/internal/selection"
)

// TestProtect asks for times of groups: a slower network takes longer, more than R losses do not come back, and what is
// wrong is said beside its field.
func TestProtect(t *testing.T) {
	t.Parallel()
	r := protectRequest{Nodes: 8, Tolerate: 2, Size: "1GiB", Lost: []int{1, 4}}
	fast := must(estimateGroup(t.Context(), r))(t)
	r.Network = "100mbit/1ms"
	slow := must(estimateGroup(t.Context(), r))(t)
	if fast.Protect.Seconds <= 0 || slow.Protect.Seconds < 50*fast.Protect.Seconds || slow.Recovery.Seconds < 50*fast.Recovery.Seconds || fast.Network == slow.Network {
		t.Errorf("10 Gbit/s: %+v\n100 Mbit/s: %+v", fast, slow)
	}
	r.Lost = []int{1, 4, 5}
	if three, err := estimateGroup(t.Context(), r); err != nil || three.Recovery != nil || *three.Protect != *slow.Protect {
		t.Errorf("three of two: %+v, %v", three, err)
	}
	for field, wrong := range map[string]func(*protectRequest){
		"nodes":    func(r *protectRequest) { r.Nodes = 65 },
		"tolerate": func(r *protectRequest) { r.Tolerate = 8 },
		"size":     func(r *protectRequest) { r.Size = "large" },
		"network":  func(r *protectRequest) { r.Network = "fast" },
		"network,": func(r *protectRequest) { r.Network = "wan,1:0.5" },
	} {
		r := r
		wrong(&r)
		_, err := estimateGroup(t.Context(), r)
		if fault := new(selection.Error); !errors.As(err, &fault) || fault.Flag != strings.TrimSuffix(field, ",") {
			t.Errorf("%s: %v", field, err)
		}
	}
}
