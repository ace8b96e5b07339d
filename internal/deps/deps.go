// Package deps holds no code: its test holds the table of which package of the module may import which.
package deps
