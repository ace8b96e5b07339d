// Package claims holds no code: its tests show what README, docs, change log and help claim.
package claims
