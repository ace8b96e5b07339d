package web

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
)

const secret = "a-secret"

func request(t *testing.T, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	w := httptest.NewRecorder()
	r.AddCookie(&http.Cookie{Name: cookieName(r), Value: secret})
	Handler(secret).ServeHTTP(w, r)
	return w
}

// TestPage checks that the page and all that it names are there, and that nothing is
// loaded from elsewhere.
func TestPage(t *testing.T) {
	t.Parallel()
	page := request(t, "GET", "http://127.0.0.1:8080/", "")
	if page.Code != http.StatusOK || !regexp.MustCompile(`(?m)<title>.*Volley.*</title>`).MatchString(page.Body.String()) {
		t.Fatalf("%d: %s", page.Code, page.Body)
	}
	names := regexp.MustCompile(`(?:src|href)="([^"#]+)"`).FindAllStringSubmatch(page.Body.String(), -1)
	if len(names) < 2 {
		t.Errorf("the page names %d files", len(names))
	}
	for _, name := range names {
		if strings.Contains(name[1], "//") {
			t.Errorf("the page loads %s", name[1])
			continue
		}
		if file := request(t, "GET", "http://127.0.0.1:8080/"+strings.TrimPrefix(name[1], "./"), ""); file.Code != http.StatusOK {
			t.Errorf("%s: %d", name[1], file.Code)
		}
	}
	if csp := page.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'self'") {
		t.Errorf("policy %q", csp)
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	good := request(t, "POST", "http://127.0.0.1:8080/api/plan", `{"flags":{"processors":"4"}}`, "Origin", "http://127.0.0.1:8080")
	if good.Code != http.StatusOK || !strings.HasPrefix(good.Body.String(), `{"result":{`) || good.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %v: %s", good.Code, good.Header(), good.Body)
	}
	bad := request(t, "POST", "http://localhost:8080/api/plan", `{"flags":{"processors":"0"}}`)
	if !strings.HasPrefix(bad.Body.String(), `{"error":{"field":"processors"`) {
		t.Errorf("%d: %s", bad.Code, bad.Body)
	}
	for method, most := range map[string]int{"load": 32 << 20, "plan": 64 << 10} {
		if long := request(t, "POST", "http://127.0.0.1/api/"+method, strings.Repeat(" ", most+1)); long.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: a request of more than %d bytes: %d", method, most, long.Code)
		}
	}
}

// TestGuard checks that no other page gets an answer, neither by its own name nor by one
// that it has made to mean this machine.
func TestGuard(t *testing.T) {
	t.Parallel()
	for _, headers := range [][]string{
		{"Host", "evil.example:8080"},
		{"Host", "127.0.0.1:8080", "Origin", "http://evil.example"},
		{"Host", "127.0.0.1:8080", "Origin", "http://127.0.0.1:9999"},
		{"Host", "127.0.0.1:8080", "Origin", "null"},
	} {
		for _, path := range []string{"/", "/api/catalog"} {
			w := request(t, "POST", "http://127.0.0.1:8080"+path, "{}", headers...)
			if body, _ := io.ReadAll(w.Body); w.Code != http.StatusForbidden || strings.Contains(string(body), "result") {
				t.Errorf("%v: %s: %d: %s", headers, path, w.Code, body)
			}
		}
	}
	if w := request(t, "POST", "http://[::1]:8080/api/catalog", "{}", "Origin", "http://[::1]:8080"); w.Code != http.StatusOK {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}

// TestToken checks that only who has the token gets an answer, and that the page's first
// load leaves a cookie in its place.
func TestToken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, target, cookie string
		want                   int
	}{
		{"GET", "/", "", 403},
		{"GET", "/assets/app.js", "", 403},
		{"POST", "/api/catalog", "", 403},
		{"POST", "/api/catalog", "volley-8080=a-secreT", 403},
		{"POST", "/api/catalog", "volley-9000=" + secret, 403},
		{"GET", "/?token=", "", 403},
		{"GET", "/?token=a-secre", "", 403},
		{"POST", "/api/catalog?token=" + secret, "", 200},
		{"POST", "/api/catalog", "volley-8080=" + secret, 200},
		{"GET", "/", "volley-8080=" + secret, 200},
		{"GET", "/?token=" + secret, "", 303},
	} {
		r := httptest.NewRequest(c.method, "http://127.0.0.1:8080"+c.target, strings.NewReader("{}"))
		if c.cookie != "" {
			r.Header.Set("Cookie", c.cookie)
		}
		w := httptest.NewRecorder()
		Handler(secret).ServeHTTP(w, r)
		if w.Code != c.want || w.Code == 403 && !strings.Contains(w.Body.String(), "open the address that it has printed") {
			t.Errorf("%s %s, cookie %q: %d, want %d: %.200s", c.method, c.target, c.cookie, w.Code, c.want, w.Body)
		}
		set := w.Header().Get("Set-Cookie")
		if c.want == 303 && (set != "volley-8080="+secret+"; Path=/; HttpOnly; SameSite=Strict" || w.Header().Get("Location") != "/") || c.want != 303 && set != "" {
			t.Errorf("%s: cookie %q, to %q", c.target, set, w.Header().Get("Location"))
		}
	}
	if a, b := NewToken(), NewToken(); a == b || len(a) < 20 {
		t.Errorf("tokens %s and %s", a, b)
	}
}

// TestNoListing checks that what is in a directory is not told.
func TestNoListing(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/assets/", "/assets", "/assets//", "/../", "/assets/../assets/"} {
		if w := request(t, "GET", "http://127.0.0.1:8080"+path, ""); strings.Contains(w.Body.String(), "app.js\"") && !strings.Contains(w.Body.String(), "<title>") || w.Code == http.StatusOK {
			t.Errorf("%s: %d: %s", path, w.Code, w.Body)
		}
	}
}

// serve starts the server with a time for bodies, and returns its address.
func serve(t *testing.T, body time.Duration) string {
	t.Helper()
	server := NewServer(secret)
	server.ReadTimeout = body
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(listener) // until the test ends
	t.Cleanup(func() { server.Close() })
	return listener.Addr().String()
}

// TestSlowBody checks that a request whose body does not come is ended.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	if NewServer(secret).ReadTimeout == 0 || NewServer(secret).IdleTimeout == 0 || NewServer(secret).WriteTimeout == 0 {
		t.Error("there are clients that the server waits for without end")
	}
	address := serve(t, 50*time.Millisecond)
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST /api/plan?token=%s HTTP/1.1\r\nHost: %s\r\nContent-Length: 100\r\n\r\n{", secret, address)
	answer, err := io.ReadAll(c)
	if err != nil || !strings.Contains(string(answer), "408 Request Timeout") {
		t.Errorf("%s, %v", answer, err)
	}
}

// TestLongAnswer checks that computing goes on when the time for its request is long over.
func TestLongAnswer(t *testing.T) {
	t.Parallel()
	address := serve(t, 50*time.Millisecond)
	r, err := http.Post("http://"+address+"/api/plan?token="+secret, "application/json", strings.NewReader(`{"flags":{"processors":"81","matrix":"random:1","field":"bn254","algorithm":"bruck-allgather"}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	answer, err := io.ReadAll(r.Body)
	if err != nil || !strings.Contains(string(answer), `{"result":`) {
		t.Errorf("%v: %.300s", err, answer)
	}
}
