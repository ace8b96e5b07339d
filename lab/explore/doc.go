// Package explore answers the questions of the page that volley-lab explore serves: what a
// schedule looks like, what it computes, what it costs.
//
// A question is a method and a JSON object. The answer is JSON, {"result": …} or
// {"error": {"field": …, "message": …}} with the flag at fault. Package web serves the methods by POST api/METHOD, and
// lab/web/wasm in a browser. flags are those of the command line by their long names, as text: {"processors": "8"}.
//
//	catalog  fields, matrices, algorithms and flags
//	plan     flags: the plan, with costs, candidates, heat maps and, where they are not too many, messages and slots
//	cost     flags, processors, only: costs for many K
//	protect  nodes, tolerate, size, network, lost: what protecting and recovering a group takes
//	mix      flags, words, lost: the bytes that the plan makes of words, and how lost words come back
//	sums     flags, sums: sums of packets, product by product: bytes over 2^8, numbers over other fields
//	load     name, text, flags: a plan or a manifest, read and checked
package explore
