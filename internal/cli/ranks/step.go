package ranks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"volley/engine"
	"volley/internal/exit"
	"volley/internal/printable"
	"volley/internal/ssh"
)

// runStep has a launcher such as srun start the processes of a run, with a new secret in their environment. The exit
// code is the launcher's. Who interrupts this process interrupts the launcher, which is to interrupt the others. What is
// left of them a while later is killed.
func (o *Joining) runStep(cmd *cobra.Command, launcher []string, program string, args []string) error {
	s := o.Session
	for _, name := range []string{"rank", "secret", "ssh"} {
		if cmd.Flags().Changed(name) {
			return exit.Usagef("--%s: --launch starts the processes, and makes their secret: leave one of both out", name)
		}
	}
	if program == copied {
		return exit.Usagef("--remote-path %s: --launch starts a volley that is there: name its file, or leave it out", copied)
	}
	if len(launcher) == 0 {
		return exit.Usagef("--launch %q: want a command, and what has blanks in quotes", o.step)
	}
	if !cmd.Flags().Changed("remote-path") {
		var err error
		if program, err = s.Self(); err != nil {
			return err
		}
	}
	s.Metrics = "" // rank 0 writes them
	excluded := []string{"launch", "remote-path", GroupFlag}
	if o.File.Domains != nil { // each process reads the group file, which has them
		excluded, args = excluded[:2], nil
	}
	line := append(append(launcher, program), strings.Fields(verbOf(cmd))...)
	for _, f := range flagsOf(cmd, excluded...) {
		line = append(line, f.String())
	}
	c := exec.CommandContext(cmd.Context(), line[0], append(append(line[1:], "--"), args...)...)
	c.Stdout, c.Stderr, c.Env = cmd.OutOrStdout(), cmd.ErrOrStderr(), slices.Clone(s.Environ)
	if !cmd.Flags().Changed("tls-cert") {
		secret, err := engine.NewSecret().MarshalText()
		if err != nil {
			return err
		}
		c.Env = append(c.Env, engine.SecretVariable+"="+string(secret))
	}
	host, _ := os.Hostname()
	reported := false // by the launcher, or a process
	c.Stderr = &ssh.LineWriter{Line: func(line string) {
		if reported = true; s.JSON { // it becomes a record
			s.Pass(host, line)
		} else {
			printable.Fprintf(cmd.ErrOrStderr(), "%s\n", line)
		}
	}}
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = s.Limits.End
	release := endWithParent(c)
	err := c.Run()
	endRest(c, s.Limits.End)
	release()
	c.Stderr.(*ssh.LineWriter).Flush()
	ended := new(exec.ExitError)
	switch {
	case cmd.Context().Err() != nil:
		return context.Cause(cmd.Context())
	case err == nil:
		return nil
	case errors.As(err, &ended) && ended.ExitCode() > 0 && reported: // why
		return exit.WithCode(exit.ErrSaid, ended.ExitCode())
	case errors.Is(err, exec.ErrWaitDelay):
		err = errors.New("it has ended before the processes that it has started; they have been ended, too")
	}
	return exit.WithCode(fmt.Errorf("--launch: %s: %w", strings.Join(launcher, " "), err), max(ended.ExitCode(), exit.Failed))
}
