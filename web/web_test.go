package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func request(t *testing.T, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w
}

// TestPage checks that the page and all that it names are there, and that nothing is
// loaded from elsewhere.
func TestPage(t *testing.T) {
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
	good := request(t, "POST", "http://127.0.0.1:8080/api/plan", `{"flags":{"processors":"4"}}`, "Origin", "http://127.0.0.1:8080")
	if good.Code != http.StatusOK || !strings.HasPrefix(good.Body.String(), `{"result":{`) || good.Header().Get("Content-Type") != "application/x-ndjson" {
		t.Errorf("%d %v: %s", good.Code, good.Header(), good.Body)
	}
	bad := request(t, "POST", "http://localhost:8080/api/plan", `{"flags":{"processors":"0"}}`)
	if !strings.HasPrefix(bad.Body.String(), `{"error":{"field":"processors"`) {
		t.Errorf("%d: %s", bad.Code, bad.Body)
	}
	if long := request(t, "POST", "http://127.0.0.1/api/load", strings.Repeat(" ", mostBytes+1)); long.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a request of more than %d bytes: %d", mostBytes, long.Code)
	}
}

// TestGuard checks that no other page gets an answer, neither by its own name nor by one
// that it has made to mean this machine.
func TestGuard(t *testing.T) {
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
