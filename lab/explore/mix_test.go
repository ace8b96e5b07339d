package explore

import (
	"encoding/hex"
	"encoding/json"
	"testing"
)

var words = []string{"WAVE", "TIDE", "REEF", "SAND"}

// TestMix loses words in all ways: as many as have a coded packet each in what is left come back, no others. Shifts add up
// to their product.
func TestMix(t *testing.T) {
	t.Parallel()
	for which := range 1 << len(words) {
		r := mixRequest{Words: words}
		for k := range words {
			if which>>k&1 == 1 {
				r.Lost = append(r.Lost, k)
			}
		}
		a := must(mix(t.Context(), r))(t)
		if enough := a.Remaining >= a.Needed; enough != (len(r.Lost) <= 2) || enough && len(a.Restored) != len(r.Lost) || !enough && len(a.Restored) > 0 {
			t.Errorf("%v lost: %d packets left of %d needed, %d back", r.Lost, a.Remaining, a.Needed, len(a.Restored))
		}
		for i, m := range a.Restored {
			if m.Text != words[r.Lost[i]] || len(m.Terms) != len(words) {
				t.Errorf("%v lost: %+v comes back", r.Lost, m)
			}
		}
		for _, m := range append(a.Mixtures, a.Restored...) {
			for _, p := range m.Terms {
				sum := make([]byte, len(words[0]))
				for _, s := range p.Shifts {
					xor(sum, s.Bytes)
				}
				if hex.EncodeToString(sum) != p.Bytes {
					t.Errorf("%s·%s is %s, and its shifts are %x", p.Coef, p.Name, p.Bytes, sum)
				}
			}
		}
	}
}

func xor(sum []byte, text string) {
	data, _ := hex.DecodeString(text)
	for i := range sum {
		sum[i] ^= data[i]
	}
}

// TestSums works sums out in fields of several kinds, and compares them with products and sums that are known.
func TestSums(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ field, request, want string }{
		{"2^8", `[["1","AB"],["2","\u0001\u0002"]]`, "4142 0204 4346"},
		{"2^8", `[["129","\u0002"]]`, "1f 1f"}, // 2·128 folds to 0x1d, and 2·1 is 2
		{"7", `[["3","5"],["6","4"]]`, "1 3 4"},
		{"257", `[["256","2"],["1","3"]]`, "255 3 1"},
		{"2^16", `[["3","5"],["1","65535"]]`, "15 65535 65520"},
	} {
		var terms [][2]string
		if err := json.Unmarshal([]byte(c.request), &terms); err != nil {
			t.Fatal(err)
		}
		request := sumsRequest{Flags: flags{"field": c.field}, Sums: []sum{{Name: "s"}}}
		for _, x := range terms {
			request.Sums[0].Terms = append(request.Sums[0].Terms, term{x[0], "x", x[1]})
		}
		a := must(sums(t.Context(), request))(t)
		got := ""
		for _, p := range a[0].Terms {
			got += p.Bytes + " "
		}
		if got += a[0].Bytes; got != c.want {
			t.Errorf("%s over %s: %s, want %s", c.request, c.field, got, c.want)
		}
	}
}
