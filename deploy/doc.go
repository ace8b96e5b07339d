// Package deploy has no code: its tests read, build and run the files for systemd, Slurm, Kubernetes and Docker in this folder.
package deploy
