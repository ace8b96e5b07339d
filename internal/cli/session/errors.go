package session

import (
	"errors"
	"fmt"
	"strings"

	"volley"
	"volley/algo"
	"volley/coded"
	"volley/engine"
	"volley/executor"
	"volley/field"
	"volley/internal/exit"
	"volley/internal/selection"
	"volley/transport"
	"volley/transport/tcp"
)

// Message returns what to print of an error, in one line: of several processors' errors the failure itself.
func Message(err error) string {
	symbol, changed, aborted := new(volley.SymbolError), new(coded.ChangedError), new(transport.AbortError)
	switch {
	case errors.Is(err, exit.ErrInterrupted):
		return exit.ErrInterrupted.Error()
	case errors.As(err, &symbol): // it names the file, which is more than the processor
		return symbol.Error()
	case errors.As(err, &changed):
		return changed.Error()
	case errors.As(err, &aborted):
		err = aborted.Cause
	}
	if flag := flagFor(err); flag != "" {
		return selection.Message(err) + "; " + flag
	}
	return selection.Message(err)
}

// flagFor says by which flag an error of the library can be mended, which knows none; "" where there is none.
func flagFor(err error) string {
	limit, planError, unreached := new(algo.LimitError), new(volley.PlanError), new(tcp.UnreachedError)
	switch {
	case errors.As(err, &planError) && planError.Matrix != "":
		return "--matrix names the one that the plan computes"
	case errors.As(err, new(*field.UnregisteredError)):
		return LabName + " has it: " + whereLab
	case errors.As(err, new(*volley.MemoryError)):
		return "--memory gives more"
	case errors.Is(err, engine.ErrOpen):
		return "--secret FILE or " + engine.SecretVariable + " gives a secret, and --bind 127.0.0.1 needs none"
	case errors.As(err, &unreached) && unreached.Ports == "" && !unreached.Refused():
		return fmt.Sprintf("with --port %v all ranks listen at these", engine.UsualPorts)
	case errors.Is(err, executor.ErrTimeout):
		return "--timeout waits longer"
	case errors.As(err, &limit) && limit.WholePackets:
		return "leave --whole out"
	case errors.As(err, &limit):
		var flags []string
		if limit.Limits.Rounds.Excess() >= 0 {
			flags = append(flags, "--rounds-over")
		}
		if limit.Limits.Memory > 0 {
			flags = append(flags, "--max-memory")
		}
		if limit.Limits.Compute > 0 {
			flags = append(flags, "--max-compute")
		}
		return "allow more with " + strings.Join(flags, " or ")
	}
	return ""
}
