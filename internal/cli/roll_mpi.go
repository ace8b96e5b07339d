//go:build mpi

package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"volley/internal/printable"
)

// A roll shows which processes of a job wait in MPI_Init on this host, as MPI itself cannot say
// who is missing there: each has a file, which it touches all the while.
type roll struct {
	files string // what their names begin with; "" where there is no place for them
	host  string
	rank  int // -1 where it is not known
	here  int // processes on this host, 0 where that is not known,
	all   int // and in the job
	done  chan struct{}
	ended chan struct{}
}

// A process that has not touched its file for rollTime is stopped, or its host is.
const (
	rollBeat = 100 * time.Millisecond
	rollTime = time.Second
)

// enter puts this process on the roll.
func enter() *roll {
	number := func(none int, names ...string) int {
		for _, name := range names {
			if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
				return n
			}
		}
		return none
	}
	r := &roll{rank: number(-1, "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"), here: number(0, "OMPI_COMM_WORLD_LOCAL_SIZE"), all: number(0, launchers...), done: make(chan struct{}), ended: make(chan struct{})}
	r.host, _ = os.Hostname()
	if dir := os.Getenv("PMIX_SERVER_TMPDIR"); dir != "" && r.rank >= 0 { // of the job, and removed with it
		r.files = filepath.Join(dir, "volley-init."+filepath.Base(os.Getenv("PMIX_NAMESPACE"))+".")
	}
	go func() {
		defer close(r.ended)
		own := r.files + fmt.Sprint(r.rank)
		for r.files != "" {
			os.WriteFile(own, []byte{0}, 0o600) // where that fails the error says less
			select {
			case <-r.done:
				return
			case <-time.After(rollBeat):
			}
		}
	}()
	return r
}

// remove is for a process that is through. Who waits in vain stays, for others to count.
func (r *roll) remove() {
	close(r.done)
	<-r.ended
	if r.files != "" {
		os.Remove(r.files + fmt.Sprint(r.rank))
	}
}

// missing returns the error of this process, which has waited for so long in vain. Of those on
// a host the first one returns at once: mpirun ends the others when it has said who is missing.
func (r *roll) missing(waited time.Duration) error {
	text := fmt.Sprintf("MPI did not bring all processes together within %v: ", waited)
	if r.rank < 0 {
		return fmt.Errorf("%sone waits on %s, and those that say nothing have not come", text, r.host)
	}
	var there, silent []int
	for rank := range r.all {
		if r.here == r.all && r.files != "" { // else those of this host are not known
			silent = append(silent, rank)
		}
	}
	names, _ := filepath.Glob(r.files + "*")
	for _, name := range names {
		rank, err := strconv.Atoi(strings.TrimPrefix(name, r.files))
		info, err2 := os.Stat(name)
		switch {
		case err != nil || err2 != nil || r.files == "":
		case time.Since(info.ModTime()) < rollTime:
			there = append(there, rank)
			silent = slices.DeleteFunc(silent, func(r int) bool { return r == rank })
		case !slices.Contains(silent, rank):
			silent = append(silent, rank)
		}
	}
	if len(there) > 0 && slices.Min(there) != r.rank {
		time.Sleep(2 * rollTime)
	}
	absent := r.here - len(there) - len(silent)
	switch {
	case len(silent) == 1:
		return fmt.Errorf("%srank %d, on %s, has not come or does not answer", text, silent[0], r.host)
	case len(silent) > 1:
		slices.Sort(silent)
		return fmt.Errorf("%sranks %s, on %s, have not come or do not answer", text, strings.Trim(strings.ReplaceAll(fmt.Sprint(silent), " ", ", "), "[]"), r.host)
	case len(there) > 0 && absent > 0:
		return fmt.Errorf("%son %s %d of %s do not wait for it", text, r.host, absent, printable.Count(r.here, "process"))
	}
	if len(there) > 0 && len(there) == r.all {
		return fmt.Errorf("%sall have come, and wait on %s: if that is only slow, give a longer --timeout", text, r.host)
	}
	time.Sleep(rollTime) // another host may know
	return fmt.Errorf("%srank %d, on %s, has come, and those that say nothing have not", text, r.rank, cmp.Or(r.host, "its host"))
}
