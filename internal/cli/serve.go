package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"volley/engine"
	"volley/internal/cli/session"
	"volley/internal/exit"
)

// A request is a line of standard input: the command line of a verb. The first one has flags by which ranks meet.
type request struct {
	Args   []string `json:"args"`
	Secret string   `json:"secret"` // of the ranks
}

// A reply is the line after the log of a verb, both on standard output.
type reply struct {
	Code    int    `json:"exit_code"`
	Printed string `json:"printed"`
}

var errAlone = errors.New("the program has ended that asked for it")

// newServe returns the verb by which a program has a process that stays beside it, and runs one verb after another
// with the ranks that it has met for the first. It ends with its standard input, and after a verb that has failed.
func newServe(s *session.Invocation) *cobra.Command {
	return &cobra.Command{
		Use:    "serve",
		Short:  "Run the verbs that lines of standard input say, with the same ranks",
		Hidden: true,
		Args:   session.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := context.WithCancelCause(cmd.Context())
			requests := make(chan request)
			go func() {
				for lines := json.NewDecoder(s.Stdin); ; {
					var r request
					if err := lines.Decode(&r); err != nil {
						stop(errAlone)
						return
					}
					requests <- r
				}
			}()
			for verb := s.Next(); ; verb = verb.Next() {
				select {
				case <-ctx.Done():
					return nil
				case r := <-requests:
					if verb.Party == nil {
						os.Setenv(engine.SecretVariable, r.Secret) // which who reads it removes
					}
					var printed bytes.Buffer
					code := execute(ctx, verb, r.Args, &printed, cmd.OutOrStdout()) // one file keeps lines whole
					if err := json.NewEncoder(cmd.OutOrStdout()).Encode(reply{code, printed.String()}); err != nil {
						return err
					}
					if code != exit.OK {
						return exit.WithCode(exit.ErrSaid, code)
					}
					debug.FreeOSMemory() // it may be long until the next one
				}
			}
		},
	}
}
