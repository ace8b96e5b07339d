// Package explore answers the questions of the page that volley explore serves: what a
// schedule looks like, what it computes, what it costs, how a run went.
//
// A question is a method and a JSON object; docs/explore.md lists them. The answer is lines of JSON: any
// number of {"event": …}, then one {"result": …} or {"error": …}. The same methods are
// served over HTTP, by package web, and inside a browser, by web/wasm.
package explore
