package session

// LabName is the command with all verbs here and those of volley/lab.
const LabName = "volley-lab"

// CommandName is that of this command line.
var CommandName = "volley"

// whereLab says where volley-lab comes from.
const whereLab = "the archives and packages of a release have it, and in a clone go build ./lab/cmd/volley-lab makes it"
