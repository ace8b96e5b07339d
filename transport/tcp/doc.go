// Package tcp connects the ranks of a run, which are processes on any machines, by TCP and TLS.
//
// Each rank has a [Listener]. The ranks learn each other's addresses from who started them, or meet at rank 0 by
// [Listener.Gather]. A pair of ranks has one connection, which is made when a transfer first needs it, and on which
// frames go both ways: a header of fixed length, and data.
//
// A message travels as a head, which has its first bytes, and a rest. The rest of a long message waits for a
// clear-to-send, so that senders do not take a receiver's link from each other. The receiver sends the clear-to-send
// unasked, once it has posted the receive. Data is sent from where it lies, and read to where it belongs. Heads that come
// before their receive is posted wait in memory, at most earlyBytes of one peer. Longer messages than were announced, and
// what was not cleared, end the run.
//
// Who may connect is the caller's to say, by a tls.Config. Peers send no paths and no commands.
package tcp
