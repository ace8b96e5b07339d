// Package coded encodes files into a directory of coded files, and decodes them again.
//
// [Encode] reads a packet of each processor, and writes a coded file for each processor that obtains a coded packet,
// and a [manifest.Manifest], which says what they are. [Decode] reads such a directory and the inputs that have
// survived, and writes all. With K inputs and the default Cauchy matrix, any K of the inputs and coded files are enough.
//
// [DecodePackets] does without files: packets in memory come back from coded packets that volley.Encode has made.
//
// All three run on any transport. Every rank calls the function and names what it has; ranks may share directories or
// have their own. Package transport/local has one rank that does everything: local.New(1)[0].
//
//	report, err := coded.Encode(ctx, t, coded.Encoding{
//		Field: f, Matrix: matrices.Spec{Family: "cauchy"}, Files: []string{"/local/ckpt.{rank}"},
//		Options: coded.Options{Dir: "/local/coded", Timeout: volley.DefaultTimeout},
//	})
//	result, err := coded.Decode(ctx, t, coded.Decoding{
//		Coded: "/local/coded", Survivors: []string{"/local/ckpt.{rank}"},
//		Options: coded.Options{Dir: "/local/back", Timeout: volley.DefaultTimeout},
//	})
//
// An Encode that fails or is killed leaves the earlier result of its directory, or the whole new one. A Decode that is
// killed may leave some of its files, each of them right. Two runs cannot write one directory at once. When a
// function fails at one rank it fails at all: the others return a *transport.AbortError.
package coded
