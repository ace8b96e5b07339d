// Command network measures all-to-all encodes between the ranks of an MPI job against
// what is usually done instead, on the same links and in the same run:
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
	"os"
)

// errWrong is the error of coded packets that are not what they should be.
var errWrong = errors.New("coded packets are wrong")

func main() {
	err := fmt.Errorf("%w: measure or table", flag.ErrHelp)
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "measure":
			err = measure(os.Args[2:])
		case "table":
			err = table(os.Args[2:])
		}
	}
	switch {
	case err == nil:
		return
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(os.Stderr, "usage: network measure FLAGS (-h lists them), or network table RESULTS DOCUMENT")
		os.Exit(2)
	}
	fmt.Fprintln(os.Stderr, "network:", err)
	if errors.Is(err, errWrong) {
		os.Exit(3)
	}
	os.Exit(1)
}
