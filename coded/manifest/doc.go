// Package manifest is the text that says what the coded files of a directory are, and the matrix by which they were
// encoded. It has no files: package coded reads and writes them.
package manifest
