// Package web serves the page of volley-lab explore, as npm run build makes it, and the methods of package explore.
package web

import (
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"volley/lab/explore"
)

//go:embed all:dist
var dist embed.FS

// How long a client may take, and how long its headers may be. The page's own are short.
const (
	headerTime = 10 * time.Second
	bodyTime   = 30 * time.Second
	writeTime  = 30 * time.Second // for an answer, and for a file
	idleTime   = time.Minute
	mostHeader = 16 << 10
)

// Budget is the bytes of memory that all requests together may take.
const Budget = explore.Budget

// NewToken returns a secret that cannot be guessed.
func NewToken() string { return rand.Text() }

// NewServer returns a server of [Handler] that drops clients that are slow.
func NewServer(token string) *http.Server {
	return &http.Server{
		Handler: Handler(token), ReadHeaderTimeout: headerTime, ReadTimeout: bodyTime, WriteTimeout: writeTime,
		IdleTimeout: idleTime, MaxHeaderBytes: mostHeader,
	}
}

// Handler returns the page, and under api/ the methods that it calls.
//
// It answers only who has the token, in the query as token= or in the cookie that the page gets; only what asks for
// this machine by a name that no other has; and no page from elsewhere: the methods compute for whoever may call them.
func Handler(token string) http.Handler {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the name is right
	}
	server := http.FileServerFS(files)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/") && r.URL.Path != "/" {
			http.NotFound(w, r) // a directory is not listed
			return
		}
		server.ServeHTTP(w, r)
	})
	mux.HandleFunc("POST /api/{method}", answer)
	return guard(token, mux)
}

// guard refuses requests without the token or by way of other pages, and lets the page load nothing from elsewhere.
func guard(token string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !local(r) {
			http.Error(w, "volley-lab explore answers to an address of its own only, such as http://127.0.0.1:8080, and to no page from elsewhere", http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; script-src 'self' 'wasm-unsafe-eval'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		matches := func(text string) bool { return subtle.ConstantTimeCompare([]byte(text), []byte(token)) == 1 }
		query := matches(r.URL.Query().Get("token"))
		cookie, err := r.Cookie(cookieName(r))
		if !query && (err != nil || !matches(cookie.Value)) {
			http.Error(w, "volley-lab explore answers only who has its token: open the address that it has printed, which ends with ?token=…", http.StatusForbidden)
			return
		}
		if query && r.Method == http.MethodGet && r.URL.Path == "/" { // the address that is shown, and copied, is without
			http.SetCookie(w, &http.Cookie{Name: cookieName(r), Value: token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
			http.Redirect(w, r, "/", http.StatusSeeOther)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// cookieName differs for servers at different ports, which share their cookies.
func cookieName(r *http.Request) string {
	_, port, _ := net.SplitHostPort(r.Host) // empty: that of HTTP
	return "volley-" + port
}

// local reports whether a request from the page itself names an address or localhost: other names may be anybody's.
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
	page, err := url.Parse(origin)
	return err == nil && page.Host == r.Host
}

// answer answers a call of a method.
func answer(w http.ResponseWriter, r *http.Request) {
	method := r.PathValue("method")
	limit, release, err := explore.Admit(r.Context(), method)
	if err != nil {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // it has waited
		w.Header().Set("Retry-After", "10")
		http.Error(w, explore.ErrBusy.Error(), http.StatusServiceUnavailable)
		return
	}
	defer release()
	request, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		status := http.StatusRequestTimeout
		if errors.As(err, new(*http.MaxBytesError)) {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, "the request: "+err.Error(), status)
		return
	}
	// From here on the connection is read only to notice that the client has gone.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	w.Header().Set("Content-Type", "application/json")
	// What cannot be written has nobody to read it.
	_, _ = explore.Answer(r.Context(), method, request, &answerWriter{w})
}

// An answerWriter gives the client time from when the answer is there.
type answerWriter struct{ http.ResponseWriter }

func (w *answerWriter) Write(data []byte) (int, error) {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTime))
	return w.ResponseWriter.Write(data)
}
