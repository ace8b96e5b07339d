package volley

// Version is the version of the module. A build may give another one, by
// -ldflags "-X volley.Version=…": ranks of different versions do not work together.
var Version = "0.2.0"
