// Package group protects the files of a group of nodes: each keeps, beside its own data,
// parity from which the data of any R lost nodes comes back.
//
// A node, or member, is a directory. [Protect] writes parity and records into its .volley, [Verify] compares everything
// with the records, and [Recover] brings back what is lost or damaged. All nodes of a group take part, through a
// transport: those at one rank are consecutive, as [executor.Hosted] deals them out. No node ever holds what all of
// them have.
//
// docs/format.md describes what is stored, which generation is in force, the states of a member, and what verbs do in
// each. docs/protect.md says when a file is missing, damaged, stale, changed or new.
package group
