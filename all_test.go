package volley_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"volley"
	"volley/algo"
	"volley/field/fieldtest"
	"volley/matrix"
)

// TestEncodeAll compares with the dense product, for every shape, and whoever obtains which coded packet.
func TestEncodeAll(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a    matrix.Matrix
		opts []volley.Option
	}{
		{volley.MDS(4, 2), nil}, {volley.MDS(2, 7), nil}, {volley.MDS(1, 1), nil}, {volley.MDS(5, 5), nil}, {volley.MDS(200, 100), nil},
		{volley.MDS(6, 3), []volley.Option{volley.WithSeparateSinks()}}, {volley.MDS(3, 3), []volley.Option{volley.WithSeparateSinks()}},
		{mustDFT(t, "257", 8), []volley.Option{volley.WithOrder(algo.Any), volley.WithPaperModel(1, volley.DefaultBeta, 0)}},
	} {
		lengths := make([]int, c.a.Rows())
		for k := range lengths {
			lengths[k] = 10 + 2*k
		}
		packets := randomPackets(c.a.Field(), lengths...)
		coded, err := volley.EncodeAll(t.Context(), c.a, packets, c.opts...)
		if err != nil || fmt.Sprint(coded) != fmt.Sprint(product(c.a, packets)) {
			t.Errorf("%d×%d: %v", c.a.Rows(), c.a.Cols(), err)
		}
	}
}

func mustDFT(t *testing.T, name string, k int) matrix.Matrix {
	t.Helper()
	a, err := matrix.DFT(fieldtest.Parse(t, name), k)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestEncodeAllRefuses gives packets that do not suit the matrix.
func TestEncodeAllRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		packets [][]byte
		want    string
	}{
		{nil, "0 packets for a matrix of 4 rows"}, {make([][]byte, 5), "5 packets for a matrix of 4 rows"},
	} {
		if _, err := volley.EncodeAll(t.Context(), volley.MDS(4, 2), c.packets); err == nil || !volley.IsInputError(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	odd := [][]byte{bytes.Repeat([]byte{1}, 3)}
	if _, err := volley.EncodeAll(t.Context(), volley.MDS(1, 256), odd); err == nil || !volley.IsInputError(err) {
		t.Errorf("half a symbol: %v", err)
	}
}

// TestMDS has each shape that there is, and no other.
func TestMDS(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		k, r int
		want string
	}{{128, 128, "2^8"}, {128, 129, "2^16"}, {65535, 1, "2^16"}, {0, 1, ""}, {1, 0, ""}, {-1, 2, ""}, {math.MaxInt/2 + 1, math.MaxInt/2 + 1, ""}, {65535, 2, ""}} {
		func() {
			defer func() {
				if why := recover(); (why == nil) == (c.want == "") {
					t.Errorf("%+v: %v", c, why)
				}
			}()
			if a := volley.MDS(c.k, c.r); a.Field().Name() != c.want || a.Rows() != c.k || a.Cols() != c.r {
				t.Errorf("%+v: %s, %d×%d", c, a.Field().Name(), a.Rows(), a.Cols())
			}
		}()
	}
}
