// Package claims has for tests what docs/format.md says. Its own tests check what README, docs, change log and help say: each figure
// by the command that shows it, each name of a test, file or folder, and each command by running it.
package claims
