package engine

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"volley/transport/tcp"
)

// Slurm returns the place of a task in a Slurm step, from the variables that srun sets, or false where there is none or
// the step has one task. The tasks meet at the first host of the step, on one of the ports that follows from job and
// step: steps of one host seldom have the same. Where the user has placed the tasks (srun -m arbitrary), Meet is empty.
func Slurm(getenv func(string) string, ports Ports) (run Run, ok bool, err error) {
	run.Size, err = strconv.Atoi(getenv("SLURM_STEP_NUM_TASKS"))
	if err != nil || run.Size < 2 {
		return run, false, nil
	}
	if run.Rank, err = strconv.Atoi(getenv("SLURM_PROCID")); err != nil || run.Rank < 0 || run.Rank >= run.Size {
		return run, false, tcp.Inputf("SLURM_PROCID=%q: want a task of the %d of the step", getenv("SLURM_PROCID"), run.Size)
	}
	run.Ports = ports
	if getenv("SLURM_DISTRIBUTION") == "arbitrary" {
		return run, true, nil // task 0 is at any of the hosts
	}
	host, err := firstHost(getenv("SLURM_STEP_NODELIST"))
	if err != nil {
		return run, false, tcp.Inputf("SLURM_STEP_NODELIST: %w", err)
	}
	job, _ := strconv.Atoi(getenv("SLURM_JOB_ID")) // 0 does as well
	step, _ := strconv.Atoi(getenv("SLURM_STEP_ID"))
	n := ports.Last - ports.First + 1
	run.Meet = net.JoinHostPort(host, strconv.Itoa(ports.First+(max(0, job)%n+max(0, step)%n)%n))
	return run, true, nil
}

// Pod returns the rank of a pod of a Kubernetes Indexed Job.
func Pod(getenv func(string) string) (rank int, ok bool) {
	rank, err := strconv.Atoi(getenv("JOB_COMPLETION_INDEX"))
	return rank, err == nil && rank >= 0
}

var (
	bracket  = regexp.MustCompile(`\[([0-9]+)[-,0-9]*\]`)
	hostName = regexp.MustCompile(`^[0-9A-Za-z._-]+$`)
)

// firstHost returns the first host of a list as Slurm writes it, such as rack[1-2]node[03-05,9],login.
func firstHost(list string) (string, error) {
	host, _, _ := strings.Cut(bracket.ReplaceAllString(list, "$1"), ",")
	if !hostName.MatchString(host) {
		return "", fmt.Errorf("%q: want names of hosts, such as node[01-04]", list)
	}
	return host, nil
}
