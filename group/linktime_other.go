//go:build !unix

package group

// setLinkTime leaves the time of a symbolic link as it is: there is no portable call.
func setLinkTime(string, int64) error { return nil }
