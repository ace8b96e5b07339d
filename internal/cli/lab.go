package cli

import (
	"errors"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"volley/internal/cli/session"
	"volley/internal/exit"
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

// newExplore returns the verb that hands over to that of volley-lab.
func newExplore(s *session.Invocation) *cobra.Command {
	return &cobra.Command{
		Use:                "explore [flags]",
		Short:              "See schedules, costs and runs in a browser, with volley-lab",
		DisableFlagParsing: true, // they are volley-lab's
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
				return cmd.Help()
			}
			program := session.InstalledLab()
			if program == "" {
				return exit.Usagef("%s is not installed: %s", session.LabName, session.WhereLab)
			}
			return runLab(s, cmd, program, append([]string{cmd.Name()}, args...))
		},
	}
}

// runLab runs volley-lab, and ends as that ends.
func runLab(s *session.Invocation, cmd *cobra.Command, program string, args []string) error {
	c := exec.CommandContext(cmd.Context(), program, args...)
	c.Env, c.Stdin, c.Stdout, c.Stderr = s.Environ, s.Stdin, cmd.OutOrStdout(), cmd.ErrOrStderr()
	if runtime.GOOS != "windows" { // which knows no other end than that of Kill
		c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	}
	err := c.Run()
	if cmd.Context().Err() != nil { // the way to end it, and no failure
		return nil
	}
	if ended := new(exec.ExitError); errors.As(err, &ended) && ended.Exited() {
		return exit.WithCode(exit.ErrSaid, ended.ExitCode())
	}
	return err
}
