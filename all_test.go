package volley_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"volley"
	"volley/algo"
	"volley/field/fieldtest"
	"volley/matrix"
)

func mustMDS(t *testing.T, k, r int) matrix.Matrix {
	t.Helper()
	a, err := volley.MDS(k, r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func mustDFT(t *testing.T, name string, k int) matrix.Matrix {
	t.Helper()
	a, err := matrix.DFT(fieldtest.Parse(t, name), k)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestAll encodes by matrices of every shape, whoever obtains which coded packet, and compares with the dense product. Then it
// loses packets and coded ones at random, as many as each code allows, and gets all packets back.
func TestAll(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		a    matrix.Matrix
		lost int
		opts []volley.Option
	}{
		{mustMDS(t, 4, 2), 2, nil}, {mustMDS(t, 2, 7), 1, nil}, {mustMDS(t, 1, 1), 1, nil}, {mustMDS(t, 5, 5), 5, nil}, {mustMDS(t, 90, 60), 60, nil}, {mustMDS(t, 3, 300), 3, nil},
		{mustMDS(t, 6, 3), 0, []volley.Option{volley.WithSeparateSinks()}}, {mustMDS(t, 3, 3), 2, []volley.Option{volley.WithSeparateSinks()}},
		{mustDFT(t, "257", 8), 1, []volley.Option{volley.WithOrder(algo.AnyOrder), volley.WithPaperModel(1, volley.DefaultBeta, 0)}}, // of which any minor may be zero
	} {
		for _, longest := range []int{0, 10} {
			lengths := make([]int, c.a.Rows())
			for k := range lengths {
				lengths[k] = min(longest, 1+k)
			}
			packets := randomPackets(c.a.Field(), lengths...)
			coded, err := volley.EncodeAll(t.Context(), c.a, packets, c.opts...)
			if err != nil || fmt.Sprint(coded) != fmt.Sprint(product(c.a, packets)) {
				t.Fatalf("%d×%d: %v", c.a.Rows(), c.a.Cols(), err)
			}
			want, left := slices.Clone(packets), slices.Clone(packets)
			for _, i := range rng.Perm(len(left))[:c.lost] {
				left[i] = nil
				want[i] = append(slices.Clone(want[i]), make([]byte, len(coded[0])-len(want[i]))...)
			}
			for _, j := range rng.Perm(len(coded))[:len(coded)-c.lost] {
				coded[j] = nil
			}
			got, err := volley.DecodeAll(t.Context(), c.a, left, coded, c.opts...)
			if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s of %d×%d, packets of up to %d symbols, %d lost: %v", c.a.ID(), c.a.Rows(), c.a.Cols(), longest, c.lost, err)
			}
		}
	}
}

// TestAllRefuses gives packets and coded ones that do not suit the matrix, or each other, or tell too little.
func TestAllRefuses(t *testing.T) {
	x, y, a := []byte("ab"), []byte("abc"), mustMDS(t, 3, 2)
	for _, c := range []struct {
		packets, coded [][]byte
		want           string
	}{
		{[][]byte{x, x}, [][]byte{x, x}, "2 packets and 2 coded ones for a matrix of 3 rows and 2 columns"},
		{[][]byte{x, x, x}, nil, "3 packets and 0 coded ones"},
		{[][]byte{nil, nil, x}, [][]byte{x, nil}, "2 of 3 packets are lost, and the coded ones that are left tell no more than 1"},
		{[][]byte{nil, nil, nil}, [][]byte{x, x}, "3 of 3 packets are lost"},
		{[][]byte{nil, y, x}, [][]byte{nil, x}, "packet 1 has 3 bytes, and coded packet 1 has 2"},
		{[][]byte{nil, nil, x}, [][]byte{x, y}, "coded packet 0 has 2 bytes, and coded packet 1 has 3"},
	} {
		if _, err := volley.DecodeAll(t.Context(), a, c.packets, c.coded); !volley.IsInputError(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	for want, packets := range map[string][][]byte{"0 packets for a matrix of 3 rows": nil, "5 packets for a matrix of 3 rows": make([][]byte, 5)} {
		if _, err := volley.EncodeAll(t.Context(), a, packets); !volley.IsInputError(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestMDS has each shape that there is, and no other.
func TestMDS(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		k, r int
		want string
	}{{128, 128, "2^8"}, {128, 129, "2^16"}, {65535, 1, "2^16"}, {0, 1, ""}, {1, 0, ""}, {-1, 2, ""}, {math.MaxInt/2 + 1, math.MaxInt/2 + 1, ""}, {65535, 2, ""}} {
		a, err := volley.MDS(c.k, c.r)
		if c.want == "" {
			if err == nil || !volley.IsInputError(err) {
				t.Errorf("%+v: %v, want an error of the input", c, err)
			}
		} else if err != nil || a.Field().Name() != c.want || a.Rows() != c.k || a.Cols() != c.r {
			t.Errorf("%+v: %v, %v", c, a, err)
		}
	}
}
