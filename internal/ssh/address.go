// Package ssh starts a program on other hosts by OpenSSH's client, and exchanges messages over its standard streams.
package ssh

import (
	"fmt"
	"strings"
	"unicode"
)

// An Address is a path on a host.
type Address struct {
	Name string // as a user gives it
	Host string // host or user@host, as ssh takes it; "": this machine
	Path string
}

// Parse reads a path, host:path, or user@host:path. An address of IPv6 stands in brackets. A colon after a slash belongs to
// a path, as in ./a:b.
func Parse(arg string) (Address, error) {
	a := Address{Name: arg, Path: arg}
	colon := strings.IndexByte(arg, ':')
	if bracket := strings.IndexByte(arg, '['); bracket >= 0 && bracket < colon {
		if colon = bracket + strings.Index(arg[bracket:], "]:") + 1; colon == bracket {
			return a, fmt.Errorf("%q: %q has no end", arg, "[")
		}
	}
	if slash := strings.IndexByte(arg, '/'); colon <= 0 || slash >= 0 && slash < colon {
		return a, nil
	}
	a.Host, a.Path = arg[:colon], arg[colon+1:]
	a.Host = strings.NewReplacer("[", "", "]", "").Replace(a.Host)
	bad := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
	switch host := a.Host[strings.LastIndexByte(a.Host, '@')+1:]; {
	case host == "" || strings.HasPrefix(host, "-") || strings.HasPrefix(a.Host, "-") || strings.ContainsFunc(a.Host, bad):
		return a, fmt.Errorf("%q: %q is no host; a file of that name here is ./%s", arg, a.Host, arg)
	case strings.HasPrefix(a.Path, "//"):
		return a, fmt.Errorf("%q: want USER@HOST:DIR, with the port in ~/.ssh/config", arg)
	case a.Path == "":
		return a, fmt.Errorf("%q: no path after the host", arg)
	}
	return a, nil
}

// String returns the address as it was given.
func (a Address) String() string { return a.Name }

// Label returns what to call a host.
func (a Address) Label() string {
	if a.Host == "" {
		return "this machine"
	}
	return a.Host
}
