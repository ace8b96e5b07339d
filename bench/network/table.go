package main
func table([]string) error { return nil }
