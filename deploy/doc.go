// Package deploy has no code: its tests read, build and run the files for systemd, Slurm, Kubernetes, Docker and Spack in this folder.
package deploy
