//go:build linux && powercut

package powercut

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// What encode and decode are run on: two sets of four files with the same names, the coded
// files of the old one, those of the new one, and what was decoded of the old one.
const codedFiles = `mkdir old new
for i in 0 1 2 3; do
	head -c $((200000 + i)) /dev/urandom > old/f$i
	head -c $((210000 + i)) /dev/urandom > new/f$i
done
cp -r old back
"$VOLLEY" encode -o out old > /dev/null
"$VOLLEY" encode -o coded new > /dev/null`

// codedKinds are verbs that write into a directory that has an earlier result.
var codedKinds = []kind{
	{name: "encode", coded: []string{"encode", "--force", "-o", "out", "new"}},
	{name: "decode", coded: []string{"decode", "--force", "-o", "back", "coded"}},
}

// checkCoded looks at what a power cut has left of encode or decode.
func (r *run) checkCoded(exited bool) error {
	if err := r.compareCoded(exited); err != nil || exited {
		return err
	}
	cmd := exec.Command(*volley, r.kind.coded...)
	cmd.Dir = r.mnt
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run again: %v: %s", err, out)
	}
	if err := r.compareCoded(true); err != nil {
		return fmt.Errorf("run again: %w", err)
	}
	return nil
}

// compareCoded returns an error unless the result is the new one or, where that may be, the
// old one. Decode gives files their names one after the other.
func (r *run) compareCoded(done bool) error {
	in := filepath.Join(r.mnt, "back")
	if r.kind.name == "encode" {
		in = filepath.Join(r.mnt, "decoded")
		cmd := exec.Command(*volley, "decode", "-o", "decoded", "out")
		cmd.Dir = r.mnt
		defer os.RemoveAll(in)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %s", err, out)
		}
	}
	is := map[string]int{}
	for i := range 4 {
		name := fmt.Sprint("f", i)
		text, err := os.ReadFile(filepath.Join(in, name))
		if err != nil {
			return err
		}
		found := false
		for _, of := range []string{"old", "new"} {
			want, err := os.ReadFile(filepath.Join(r.mnt, of, name))
			if err != nil {
				return err
			}
			if bytes.Equal(text, want) {
				is[of]++
				found = true
			}
		}
		if !found {
			return fmt.Errorf("%s is neither the old one nor the new one", name)
		}
	}
	switch {
	case done && is["new"] < 4:
		return errors.New("the result is not the new one")
	case r.kind.name == "encode" && is["old"]*is["new"] > 0:
		return errors.New("the result is neither the old one nor the new one")
	}
	return nil
}
