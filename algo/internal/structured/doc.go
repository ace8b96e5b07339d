// Package structured has the plans of matrices that are products of layers: it fuses neighbouring layers and runs a universal step in the groups of each.
package structured
