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
