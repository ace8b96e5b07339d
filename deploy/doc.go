// Package deploy has no code: its tests read, build and run the files for systemd, Slurm and Kubernetes in this folder.
package deploy
