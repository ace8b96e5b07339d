// Package group protects the files of a group of nodes: each keeps, beside its own data,
// parity from which the data of any R lost nodes comes back.
//
// A node, or member, is a directory. [Protect] writes parity and records into its .volley, [Verify] compares everything
// with the records, and [Recover] brings back what is lost or damaged. All nodes of a group take part, through a
// transport: those at one rank are consecutive, as [executor.Hosted] deals them out. No node ever holds what all of
// them have. docs/format.md describes what is stored.
//
// # Generations
//
// Every run of Protect makes a generation: a manifest, which has the digests of the records of all K nodes, and at each
// node its parity, its record and parity of all records. The SHA-256 of the manifest, its root, names the generation.
//
//	held       a node has the manifest, and it is committed, or everything that belongs to it
//	           is there and right (complete)
//	pending    a node holds it and has not committed it: manifest pending.<g>.json
//	committed  manifest.<g>.json. A node commits only when all K nodes have it complete. It
//	           removes older parity only when all K nodes have committed
//	in force   the newest generation that at least K-R members and more than half of those
//	           that count hold, and that is committed at one member or complete at all that
//	           count. Or, where more than R are lost, one that is committed and that all that
//	           count hold. Where it is pending it is rolled forward. Where no member has committed
//	           anything, all nodes that are not lost have to hold it complete
//	in doubt   a member has committed a newer generation than the one in force, or none is in
//	           force and a member has committed one: every verb names who has what and stops;
//	           Options.Believe names the member whose newest generation is in force
//	           nothing committed, and none in force: the group is not protected
//
// A manifest of K nodes is in force only in a run with K nodes. So while Resize changes K, the group is in force with
// the nodes that it had until one node has committed the new generation, and with those that it is to have as soon as
// all nodes have that complete. node.json says which node a directory is in either.
//
// Members that count have a valid node.json and a valid manifest of the group. Empty, lost and
// failing ones do not count. One rule serves a crash between two commits, a node that was
// restored from a copy, and a manifest that somebody has made up at one node.
//
// One node does not decide about others: a generation that a single node holds is not in force
// while another node is there that has other manifests, or has files and no node.json. Where all
// others are lost it is, and nothing but a key tells whether it was made up.
//
// # Keys
//
// With Options.Key a manifest has an HMAC, and only manifests that were made with the key count. Every member that runs
// a verb has the key, and could make one. A generation that was in force once stays what it was: a node that shows it
// again is stale, and where all that count do, the group is rolled back.
//
//	no key     refused where a manifest with an HMAC is committed, or pending and nothing else is committed
//	the key    Protect gives it to a group that has none, where all nodes that are not lost hold
//	           the generation in force and no manifest was made with another key
//	NoKey      nothing is checked, and Protect makes manifests without HMAC
//
// # States of a member, and what verbs do
//
//	state      what it is                          Protect           Verify         Recover
//	whole      all is as it was protected          codes changes     says so        writes nothing
//	lost       no directory, or nothing in it      refuses (Force)   says so        brings all back
//	failing    it cannot be read: a dying disk     refuses           says why       leaves it, the others go on
//	unreachable                                    -                 status: says   To goes on without it
//	           its host does not answer                              why
//	foreign    it has files of its own, and        refuses           says so        refuses
//	           nothing says whose node it is
//	damaged    files, parity or records are        refuses files     names them     brings them back
//	           missing or not what they were       that rotted
//	stale      it has an earlier generation only   refuses (Force)   names files    brings files back that are as
//	                                                                                in its own generation
//	changed    somebody has written to files       codes them        names them     leaves them (Revert)
//	busy       another run has the lock            [*disk.BusyError] the same       the same; two Verify share it
//
// # Files
//
// docs/protect.md says when a file is missing, damaged, stale, changed or new, and what Recover does.
//
// Where a file takes the place of another, that is kept in .volley/replaced.
package group
