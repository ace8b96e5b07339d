package explore

import (
	"fmt"
	"strings"
	"testing"
)

// TestFaults checks that what is wrong with a request is said beside its field, and says what is wrong or what there may
// be at most. A method that takes no more than flags has them alone.
func TestFaults(t *testing.T) {
	t.Parallel()
	const k4 = `"processors":"4",`
	for _, c := range []struct{ methods, flags, other, field, want string }{
		// What every method takes, by the one parser that all have.
		{"plan", `"processors":"x"`, "", "processors", "whole number"},
		{"plan", `"processors":"0"`, "", "processors", "1 or more"},
		{"plan", ``, "", "processors", "1 or more"},
		{"plan", k4 + `"field":"6"`, "", "field", "6"},
		{"plan cost", k4 + `"matrix":"nosuch"`, "", "matrix", "nosuch"},
		{"plan", k4 + `"matrix":"dft"`, "", "matrix", "K = 4 does not divide"},
		{"plan", k4 + `"matrix":"file:/etc/passwd"`, "", "matrix", "reads no files"},
		{"plan", k4 + `"matrix":"vandermonde","points":"/etc/passwd"`, "", "points", "command line"},
		{"plan", k4 + `"order":"sideways"`, "", "order", "natural, reversed, any"},
		{"plan", k4 + `"beta":"3"`, "", "beta", "unit"},
		{"plan", k4 + `"tau":"-1s"`, "", "tau", "unit"},
		{"plan", k4 + `"gamma":"x"`, "", "gamma", "unit"},
		{"plan", k4 + `"size":"big"`, "", "size", "64MiB"},
		{"plan cost", k4 + `"algorithm":"nosuch"`, "", "algorithm", "nosuch"},
		{"plan", k4 + `"algorithm":"dft"`, "", "algorithm", "structure"},
		{"plan", k4 + `"inverse":"perhaps"`, "", "inverse", "true or false"},
		{"plan", `"processors":"16","max-memory":"2"`, "", "max-memory", "packets of memory"},
		{"plan", `"processors":"16","max-compute":"1"`, "", "max-compute", "multiply-adds"},
		{"plan", `"processors":"16","rounds-over":"-1"`, "", "rounds-over", "0 or more"},
		{"plan cost", `"nosuch":"4"`, "", "nosuch", "no flag --nosuch"},

		// More than the page takes.
		{"plan", k4 + `"sinks":"1000000000"`, "", "sinks", "1000000000 sinks: the page takes 1024 at most; the command line"},
		{"cost", k4 + `"sinks":"1000000000"`, "", "sinks", "the page takes 2048 at most; the command line"},
		{"plan", `"processors":"1025"`, "", "processors", "the page takes 1024 at most; the command line"},
		{"plan", `"processors":"1000","sinks":"1000","separate":"true"`, "", "sinks", "the page takes 1024 at most"},
		{"plan cost", k4 + `"ports":"1000000000"`, "", "ports", "the page takes 2048 at most"},
		{"plan cost", k4 + `"rounds-over":"9223372036854775807"`, "", "rounds-over", "the page takes 2147483647 at most"},
		{"plan cost", k4 + `"max-memory":"9223372036854775807"`, "", "max-memory", "the page takes 2147483647 at most"},
		{"plan cost", k4 + `"size":"2PiB"`, "", "size", "the page takes 1PiB at most"},
		{"plan", `"processors":"1000","matrix":"random:1","field":"bn254","inverse":"true"`, "", "inverse", "the page takes 256 rows at most"},
		{"plan cost load", `"matrix":"random:` + strings.Repeat("1", 1000) + `"`, "", "matrix", "1007 characters: the page takes 200 at most"},
		{"cost", `"matrix":"random:1","inverse":"true"`, `"processors":"4,1000"`, "inverse", ""},

		{"cost", ``, `"processors":"x"`, "processors", ""},
		{"cost", ``, `"processors":"2..2049"`, "processors", ""},
		{"cost", ``, `"processors":"2..514"`, "processors", ""},
		{"cost", ``, `"only":"magic"`, "only", "magic"},
		{"cost", ``, `"only":"auto"`, "only", ""},
		{"cost", `"matrix":"cauchy"`, `"only":"dft"`, "only", ""},
		{"cost", `"sinks":"3"`, `"processors":"4"`, "matrix", ""},
		{"cost", `"matrix":"cauchy"`, `"processors":"200"`, "matrix", ""},

		{"mix", ``, `"words":[]`, "words", ""},
		{"mix", ``, `"words":[""]`, "words", ""},
		{"mix", ``, `"words":["WAVE","SEA"]`, "words", ""},
		{"mix", ``, `"words":["A"` + strings.Repeat(`,"A"`, mostWords) + `]`, "words", ""},
		{"mix", `"field":"17"`, `"words":["A","B"]`, "field", ""},
		{"sums", `"field":"6"`, `"sums":[]`, "field", ""},
		{"sums", ``, `"sums":[{"name":"s","terms":[{"coef":"256","word":"A"}]}]`, "", "256"},
		{"sums", ``, `"sums":[{"name":"s","terms":[{"coef":"1","word":"A"},{"coef":"1","word":"AB"}]}]`, "", ""},
		{"nosuch", ``, ``, "", "nosuch"},
	} {
		for method := range strings.FieldsSeq(c.methods) {
			request := fmt.Sprintf(`{"flags":{%s}`, strings.TrimSuffix(c.flags, ","))
			if c.other != "" {
				request += "," + c.other
			}
			_, fault := ask[any](t, method, request+"}")
			if fault == nil || fault.Message == "" || !strings.Contains(fault.Message, c.want) || fault.Field != c.field && c.field != "" {
				t.Errorf("%s %.200s: %+v, want beside %s: %s", method, request, fault, c.field, c.want)
			}
		}
	}
	for _, request := range []string{``, `[]`, `{"flag":{}}`, `{"flags":{"processors":4}}`} {
		if _, failure := ask[any](t, "plan", request); failure == nil || failure.Field != "" {
			t.Errorf("%s: %+v", request, failure)
		}
	}
}
