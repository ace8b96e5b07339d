package volley

// Version is the version of the module, or what a build gives by -ldflags "-X volley.Version=…". Ranks have the same.
var Version = "0.2.0"
