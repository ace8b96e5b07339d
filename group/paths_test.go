package group

import "fmt"

// Paths of what a node has of a generation.
func manifestPath(g int64) string { return metaPath(generationDir(g), manifestFile) }
func pendingPath(g int64) string  { return metaPath(pendingDir(g), manifestFile) }
func parityPath(g int64) string   { return metaPath(generationDir(g), parityFile) }
func recordPath(g int64) string   { return metaPath(generationDir(g), recordFileName) }
func copyPath(g int64, of int) string {
	return metaPath(generationDir(g), fmt.Sprint(recordFileName, ".", of))
}
func nodePath(g int64) string { return metaPath(generationDir(g), nodeFile) }
