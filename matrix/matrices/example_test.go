package matrices_test

import (
	"fmt"
	"os"

	"volley/field"
	"volley/matrix/matrices"
)

func ExampleSpec_Build() {
	f, err := field.Parse("257")
	if err != nil {
		fmt.Println(err)
		return
	}
	spec, err := matrices.ParseSpec("dft")
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := spec.Build(f, 4, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := matrices.WriteCSV(os.Stdout, a); err != nil {
		fmt.Println(err)
	}

	_, err = spec.Build(f, 5, 5)
	fmt.Println(err)
	// Output:
	// 1,1,1,1
	// 1,241,256,16
	// 1,256,1,256
	// 1,16,256,241
	// matrix: dft over 257: K = 5 does not divide q-1 = 256: want K = 4 or 8, or a field such as 11
}
