package volley

import (
	"reflect"
	"runtime/debug"
	"strings"
)

// Version is the version of the module, or what a build gives by -ldflags "-X volley.Version=…". Ranks have the same.
// Between two releases it is that of the next one with -dev, and the commit where the build knows it.
var Version = "0.3.0-dev"

func init() {
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasSuffix(Version, "-dev") {
		Version += built(info)
	}
}

// built returns what a build of a commit is called after its version: +g with the commit, or nothing.
func built(info *debug.BuildInfo) string {
	commit, changed, path := "", "", reflect.TypeFor[Encoder]().PkgPath()
	for _, s := range info.Settings {
		switch {
		case info.Main.Path != path: // of the program that uses this module
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = ".dirty"
		}
	}
	for _, m := range info.Deps {
		if m.Path == path && strings.Count(m.Version, "-") > 1 { // a pseudo-version
			commit = m.Version[strings.LastIndexByte(m.Version, '-')+1:]
		}
	}
	if commit == "" {
		return ""
	}
	return "+g" + commit[:min(12, len(commit))] + changed
}
