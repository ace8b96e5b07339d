package files

import "testing"

// TestName writes names of any bytes as JSON has them, and back.
func TestName(t *testing.T) {
	t.Parallel()
	for name, want := range map[Name]string{"plain": "plain", "a b\n": "a b\n", "\xff": "base64:/w==", "base64:x": "base64:YmFzZTY0Ong=", "": ""} {
		text, err := name.MarshalText()
		var back Name
		if err != nil || string(text) != want || back.UnmarshalText(text) != nil || back != name {
			t.Errorf("%q: %q, %v, and back %q: want %q", name, text, err, back, want)
		}
	}
	if err := new(Name).UnmarshalText([]byte("base64:?")); err == nil {
		t.Error("what is no base64 was taken")
	}
}
