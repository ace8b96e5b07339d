package cli

import "encoding/json"

// What verbs print as JSON: others read it by these names.

type setText struct {
	Set     int             `json:"set"`
	Sets    int             `json:"sets"`
	Dirs    []string        `json:"dirs"`
	Domains []string        `json:"domains"`
	Notes   []string        `json:"notes"`
	Report  json.RawMessage `json:"report"`
	Error   string          `json:"error"`
}

// A memoryList is what a program says of its memory to volley buffers.
type memoryList struct {
	Buffers []memoryPart `json:"buffers"`
	Parity  *memoryPart  `json:"parity"`
	Room    bool         `json:"room"`
}

type memoryPart struct {
	FD     int   `json:"fd"`
	Offset int64 `json:"offset"`
	Bytes  int64 `json:"bytes"`
}
