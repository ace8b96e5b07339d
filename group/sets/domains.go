package sets

import (
	"io"
	"os"
	"strings"
)

// mostDomains bounds the file of domains, in bytes.
const mostDomains = 16 << 20

// ReadDomains reads a file that has the failure domain of each host: a line is the host, or the directory as its
// user names it, blanks, and the domain. Lines that are empty or begin with # say nothing.
func ReadDomains(name string) (map[string]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, errorf("failure domains: %v", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostDomains+1))
	if err != nil {
		return nil, errorf("failure domains: %v", err)
	}
	if len(text) > mostDomains {
		return nil, errorf("%s: longer than %d bytes: want lines of a host and its domain", name, mostDomains)
	}
	return parseDomains(name, string(text))
}

func parseDomains(name, text string) (map[string]string, error) {
	domains := map[string]string{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		at := strings.LastIndexAny(line, " \t")
		if at < 0 {
			return nil, errorf("%s: line %d: %q: want a host and its domain", name, number, line)
		}
		host, domain := strings.TrimSpace(line[:at]), line[at+1:]
		if other := domains[host]; other != "" && other != domain {
			return nil, errorf("%s: line %d: %s is in domain %s, and was in %s before: leave one out", name, number, host, domain, other)
		}
		domains[host] = domain
	}
	return domains, nil
}
