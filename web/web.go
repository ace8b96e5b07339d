// Package web serves the page of volley explore: files that are built from this folder and
// embedded, and the methods of package internal/explore, which it asks. npm run build makes
// the files.
package web

import (
	"embed"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"

	"volley/internal/explore"
)

//go:embed all:dist
var dist embed.FS

// mostBytes bounds a request: a trace is the longest.
const mostBytes = 64 << 20

// Handler returns the page, and under api/ the methods that it calls.
//
// It answers only what asks for this machine by a name that no other has, and no page
// from elsewhere: the methods compute for whoever may call them.
func Handler() http.Handler {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the name is right
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("POST /api/{method}", answer)
	return guard(mux)
}

// guard refuses requests that come by way of other pages, and lets the page load nothing
// from elsewhere.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !local(r) {
			http.Error(w, "volley explore answers to an address of its own only, such as http://127.0.0.1:8080, and to no page from elsewhere", http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; script-src 'self' 'wasm-unsafe-eval'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		next.ServeHTTP(w, r)
	})
}

// local reports whether a request names an address, or localhost, and comes from the page
// itself. A name could be made to mean this machine by anybody.
func local(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	if host != "localhost" && net.ParseIP(host) == nil {
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	from, err := url.Parse(origin)
	return err == nil && from.Host == r.Host
}

// answer answers a call of a method, line by line.
func answer(w http.ResponseWriter, r *http.Request) {
	request, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBytes))
	if err != nil {
		http.Error(w, "the request: "+err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	// What cannot be written has nobody to read it.
	_, _ = explore.Answer(r.Context(), r.PathValue("method"), request, &flusher{w})
}

// A flusher sends every line at once.
type flusher struct{ http.ResponseWriter }

func (f *flusher) Write(data []byte) (int, error) {
	n, err := f.ResponseWriter.Write(data)
	if err == nil {
		err = http.NewResponseController(f.ResponseWriter).Flush()
	}
	return n, err
}
