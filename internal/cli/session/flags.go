package session

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley/internal/exit"
	"volley/internal/selection"
)

// NoArguments refuses arguments behind the flags.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return exit.Usagef("%s takes no argument, got %q: see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	return nil
}

// FlagError says what is wrong with a flag of a verb, and what is wanted.
func FlagError(cmd *cobra.Command, err error) error {
	if invalid := new(pflag.InvalidValueError); errors.As(err, &invalid) {
		flag := invalid.GetFlag()
		if err = fmt.Errorf("--%s: %w", flag.Name, invalid.Unwrap()); selection.Wanted(flag) != "" {
			err = fmt.Errorf("--%s %q: want %s", flag.Name, invalid.GetValue(), selection.Wanted(flag))
		}
	}
	return exit.Usagef("%w: see %s --help", err, cmd.CommandPath())
}

// Verbose reports whether all that is done is to be said.
func Verbose(cmd *cobra.Command) bool { return cmd.Flag("verbose").Value.String() == "true" }
