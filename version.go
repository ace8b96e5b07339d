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
		if _, hash, pseudo := cutLast(m.Version, "-"); m.Path == path && pseudo && strings.Count(m.Version, "-") > 1 {
			commit = hash
		}
	}
	if commit == "" {
		return ""
	}
	return "+g" + commit[:min(12, len(commit))] + changed
}

// cutLast is [strings.Cut] at the last separator.
func cutLast(text, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(text, sep); i >= 0 {
		return text[:i], text[i+len(sep):], true
	}
	return text, "", false
}
