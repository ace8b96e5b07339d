//go:build !amd64

package twosums

func sumBoth(_, _, _, _ []byte) bool { return false }
