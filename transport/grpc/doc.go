// Package grpc connects the ranks of a run, which are processes on any machines, by gRPC.
//
// Each rank has a [Listener]. The ranks learn each other's addresses from who started them, or meet at rank 0 by
// [Listener.Gather]. A pair of ranks has one bidirectional stream, which is opened when a transfer first needs it.
//
// A message travels as a head, which has its first bytes, and a rest. The rest of a long message waits for a
// clear-to-send, so that senders do not take a receiver's link from each other, and is copied once, to where it is to
// lie. The receiver sends the clear-to-send unasked, once it has posted the receive and the messages of earlier rounds
// have nearly come. Heads that come before their receive is posted wait in memory, at most earlyBytes of one peer.
// Longer messages than were announced, and what was not cleared, end the run.
//
// Who may connect is the caller's to say, by a tls.Config. Peers send no paths and no commands.
package grpc
