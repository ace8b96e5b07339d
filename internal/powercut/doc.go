// Package powercut has a test of what a power cut leaves of groups, on real file systems. It has the build tag powercut,
// and needs root and loop devices.
package powercut
