package cli

import (
	"github.com/spf13/cobra"

	"volley/internal/cli/session"
)

// extension is what this command line has beside the verbs here. Of volley it is nil.
var extension *Lab

// A Lab is what volley-lab has beside the verbs of volley.
type Lab struct {
	Help  string                  // of the command itself
	Verbs func() []*cobra.Command // which have their help
}

// Extend makes the command line that of volley-lab. It is called before the command line is used.
func Extend(l Lab) { extension, session.CommandName = &l, session.LabName }
