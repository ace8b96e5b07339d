// Command network measures all-to-all encodes between the ranks of an MPI job against
// what is done without Volley, in turns, in one run:
//
//	lab up 4 100mbit 1ms
//	go build -tags mpi -o /tmp/network ./bench/network
//	lab mpirun /tmp/network measure --sizes 256KiB --json results.jsonl
//	go run ./bench/network table results.jsonl docs/performance.md
//
// lab makes the hosts, and run does all of it for the tables of docs/performance.md.
// Without the tag mpi there is only table.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

var (
	errUsage = errors.New("usage: network measure FLAGS (-h lists them), or network table RESULTS DOCUMENT")
	errWrong = errors.New("results are wrong")
)

func main() {
	args := os.Args[1:]
	err := errUsage
	if len(args) > 0 {
		switch args[0] {
		case "measure":
			err = measure(args[1:])
		case "table":
			err = table(args[1:])
		}
	}
	os.Exit(exitCode(os.Stderr, err))
}

// exitCode prints the error and returns the exit code for it.
func exitCode(w io.Writer, err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, flag.ErrHelp): // package flag has printed the flags
		return 2
	}
	fmt.Fprintln(w, "network:", err)
	switch {
	case errors.Is(err, errUsage):
		return 2
	case errors.Is(err, errWrong):
		return 3
	}
	return 1
}
