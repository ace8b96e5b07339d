package field

// Portable makes a field of odd characteristic without kernels of this package that
// need vector instructions.
func Portable(name string) Field {
	s, err := parse(name)
	if err != nil {
		panic(err)
	}
	switch f := s.build().(type) {
	case *prime:
		f.simd = nil
		return f
	case *gold:
		f.simd = false
		return f
	case *scalars:
		f.simd = nil
		return f
	case *extension:
		return f
	}
	panic(name + " is of no odd characteristic")
}
