// Package engine makes a process a rank of a run on several machines.
//
// The user's engine starts the processes: Slurm, Kubernetes, a parent process, or the user by hand. It
// gives each of them four things, a [Run]: rank, size, where to meet, and the run's secret. [Join] brings the
// ranks together over transport/tcp: the example of package group/buffers is a program that does so. There is no
// daemon and no membership.
//
// Whoever has the secret may take part. From it every rank makes the same key, and TLS 1.3 accepts
// exactly this key, on both sides.
package engine
