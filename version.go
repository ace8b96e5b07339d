package volley

// Version is the version of the module.
const Version = "0.1.0"
