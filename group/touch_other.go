//go:build !linux

package group

import "io/fs"

// touchOf knows nothing: times alone tell of changes then.
func touchOf(fs.FileInfo) touch { return touch{} }
