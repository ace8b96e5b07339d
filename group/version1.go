package group

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// version1Head is what manifests of version 1 begin with.
const version1Head = `{"format":"volley-group","version":1,`

// manifest1 is a manifest of version 1: it has the records of all nodes in itself, a digest
// of every file, and those of blocks with the zeros between files.
type manifest1 struct {
	Manifest
	Members []struct {
		Bytes   int64    `json:"bytes"`
		Entries []entry1 `json:"entries"`
		Data    []string `json:"data"`
		Parity  []string `json:"parity"`
	} `json:"members"`
}

type entry1 struct {
	Entry
	MTime int64 `json:"mtime"` // nanoseconds since 1970
}

// decodeVersion1 reads a manifest of version 1, and checks it.
func decodeVersion1(text []byte) (*Manifest, []*Member, error) {
	var old manifest1
	if err := json.Unmarshal(text, &old); err != nil {
		return nil, nil, err
	}
	m := &old.Manifest
	if len(old.Members) != m.Nodes { // which bounds what a code may take
		return nil, nil, fmt.Errorf("members: %d of %d nodes", len(old.Members), m.Nodes)
	}
	if err := m.validateCode(); err != nil {
		return nil, nil, err
	}
	var members []*Member
	for n, o := range old.Members {
		x := &Member{Bytes: o.Bytes}
		for _, e := range o.Entries {
			at := time.Unix(0, e.MTime)
			e.Seconds, e.Nanoseconds = at.Unix(), int64(at.Nanosecond())
			if _, err := hex.DecodeString(e.SHA256); e.Type == typeFile && (err != nil || len(e.SHA256) != 64) {
				return nil, nil, fmt.Errorf("members[%d].entries: %q: sha256 %q", n, string(e.Path), e.SHA256)
			}
			x.Entries = append(x.Entries, e.Entry)
		}
		for _, list := range []struct {
			name string
			hex  []string
			to   *[]byte
		}{{"data", o.Data, &x.blocks}, {"parity", o.Parity, &x.Parity}} {
			for i, text := range list.hex {
				raw, err := hex.DecodeString(text)
				if err != nil || len(text) != 64 {
					return nil, nil, fmt.Errorf("members[%d].%s[%d]: %q: want a SHA-256", n, list.name, i, text)
				}
				*list.to = append(*list.to, raw...)
			}
		}
		err := m.validateDigests("data", x.blocks, m.DataChunks)
		if err == nil {
			err = m.validateMember(x)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("members[%d].%w", n, err)
		}
		members = append(members, x)
	}
	return m, members, nil
}
