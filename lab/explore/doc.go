// Package explore answers the questions of the page that volley explore serves: what a
// schedule looks like, what it computes, what it costs, how a run went.
//
// A question is a method and a JSON object; docs/explore.md lists them. The answer is lines of JSON: any {"event": …},
// then one {"result": …} or {"error": …}. The same methods are served by package web, and in a browser by lab/web/wasm.
package explore
