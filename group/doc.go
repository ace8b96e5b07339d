// Package group protects the files of a group of nodes: each keeps, beside its own data,
// parity from which the data of any R lost nodes comes back.
//
// A node is a directory. A [Group] is what programs hold of all of them: [Open] returns one that has its
// directories in this process, [Join] one whose directories are spread over the ranks of a transport. Those at one rank
// are consecutive, as [executor.Hosted] deals them out. No node ever holds what all of them have.
//
// [Group.Protect] writes parity and records into the .volley of every node, [Group.Verify] compares everything with the
// records, [Group.Status] names, lengths and times alone, and [Group.Recover] brings back what is lost or damaged.
// [Group.Resize] adds and removes nodes, [Group.Unprotect] ends the protection, and [Group.Snapshots] lists snapshots. All
// nodes take part in each verb.
//
// docs/format.md describes what is stored, which generation is in force, the states of a node, and what verbs do in
// each. docs/protect.md says when a file is missing, damaged, stale, changed or new.
package group
