package render

import "testing"

// A key is as long as it says, for every stream, and the same for the same stream.
func TestDeriveRSAKey(t *testing.T) {
	for i := range 8 {
		stream := func() *randomSource { return newRandomSource(FixedRecord(), string(rune('a'+i))) }
		a, err := deriveRSAKey(stream().stream("test"), 1024) // short, so that it is quick
		if err != nil {
			t.Fatal(err)
		}
		b, err := deriveRSAKey(stream().stream("test"), 1024)
		if err != nil || !a.Equal(b) || a.N.BitLen() != 1024 {
			t.Errorf("%d bits, %v, %t", a.N.BitLen(), err, a.Equal(b))
		}
	}
}
