package claims

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// words splits a line of a shell as far as the documents need it: quotes, patterns for files,
// a comment, and > FILE, which it returns.
func words(line string) (list []string, to string, err error) {
	for line = strings.TrimSpace(line); line != "" && line[0] != '#'; line = strings.TrimSpace(line) {
		word, rest, _ := strings.Cut(line, " ")
		if line[0] == '\'' {
			var ok bool
			if word, rest, ok = strings.Cut(line[1:], "'"); !ok {
				return nil, "", fmt.Errorf("%s: a quote is open", line)
			}
			list = append(list, word)
			line = rest
			continue
		}
		line = rest
		if word == ">" {
			to, line, _ = strings.Cut(strings.TrimSpace(line), " ")
			continue
		}
		if names, err := filepath.Glob(word); err == nil && len(names) > 0 && strings.ContainsAny(word, "*[") {
			list = append(list, names...)
			continue
		}
		list = append(list, word)
	}
	if len(list) == 0 {
		return nil, "", errors.New("no command")
	}
	return list, to, nil
}

// inLab says that the command line is that of volley-lab, as it is in tests of the module lab.
var inLab bool

// execute runs a command of the documents in this process.
func execute(t testing.TB, args []string, to string) (stdout, stderr string, code int) {
	t.Helper()
	if to != "" {
		stdout, stderr, code = execute(t, args, "")
		if err := os.WriteFile(to, []byte(stdout), 0o666); err != nil {
			t.Error(err)
		}
		return "", stderr, code
	}
	if len(args) > 3 && args[0] == "go" && args[1] == "run" {
		if args[2] == "./lab/cmd/volley-lab" && !inLab {
			return "", "", 0
		}
		args = append([]string{"volley"}, args[3:]...)
	}
	var err error
	switch name, rest := args[0], args[1:]; name {
	case "volley":
		return run(rest...)
	case "rm":
		remove := os.Remove
		if rest[0] == "-r" {
			remove, rest = os.RemoveAll, rest[1:]
		}
		for _, path := range rest {
			err = errors.Join(err, remove(path))
		}
	case "cp": // -r
		err = os.CopyFS(rest[2], os.DirFS(rest[1]))
	case "cat":
		return read(t, rest[0]), "", 0
	default:
		err = errors.New("no such command here")
	}
	if err != nil {
		t.Errorf("%s: %v", strings.Join(args, " "), err)
	}
	return "", "", 0
}
