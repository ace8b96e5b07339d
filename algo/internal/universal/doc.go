// Package universal has prepare-and-shoot, and the universal step with a window and strides of any size.
package universal
