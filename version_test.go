package volley

import (
	"runtime/debug"
	"testing"
)

// TestBuilt names builds by their commits, of this module alone.
func TestBuilt(t *testing.T) {
	t.Parallel()
	const commit = "f3994de7a1b2c3d4e5f60718293a4b5c6d7e8f90"
	vcs := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: commit}, {Key: "vcs.modified", Value: modified}}
	}
	for want, info := range map[string]debug.BuildInfo{
		"+gf3994de7a1b2":       {Main: debug.Module{Path: "volley"}, Settings: vcs("false")},
		"+gf3994de7a1b2.dirty": {Main: debug.Module{Path: "volley"}, Settings: vcs("true")},
		"":                     {Main: debug.Module{Path: "another"}, Settings: vcs("false"), Deps: []*debug.Module{{Path: "volley", Version: "v0.2.0"}}},
		"+g0123456789ab":       {Main: debug.Module{Path: "another"}, Settings: vcs("true"), Deps: []*debug.Module{{Path: "volley", Version: "v0.2.1-0.20261126112812-0123456789ab"}}},
	} {
		if got := built(&info); got != want {
			t.Errorf("%+v: %q, want %q", info, got, want)
		}
	}
	if got := built(&debug.BuildInfo{Main: debug.Module{Path: "volley"}}); got != "" {
		t.Errorf("without a commit: %q", got)
	}
}
