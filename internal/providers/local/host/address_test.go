package host

import (
	"net/netip"
	"testing"
)

func TestFreeAddress(t *testing.T) {
	const block = "127.1.16.0/27" // .0 to .31, of which machines get .11 to .30
	all := []string{}
	for a := netip.MustParseAddr("127.1.16.11"); a.String() != "127.1.16.31"; a = a.Next() {
		all = append(all, a.String())
	}
	without := func(drop string) (left []string) {
		for _, a := range all {
			if a != drop {
				left = append(left, a)
			}
		}
		return left
	}
	for name, c := range map[string]struct {
		used []string
		want string
	}{
		"the first":                           {nil, "127.1.16.11"},
		"the next":                            {[]string{"127.1.16.11"}, "127.1.16.12"},
		"not one that was just given back":    {[]string{"127.1.16.11", "127.1.16.13"}, "127.1.16.14"},
		"the last":                            {without("127.1.16.30"), "127.1.16.30"},
		"at the end, the first gap":           {without("127.1.16.20"), "127.1.16.20"},
		"at the end, the very first":          {without("127.1.16.11"), "127.1.16.11"},
		"none, not even the broadcast's":      {all, ""},
		"one before the machines is in use":   {[]string{"127.1.16.1"}, "127.1.16.11"},
		"one of another block is in use":      {[]string{"127.9.0.1"}, "127.1.16.11"},
		"one that is no address is in use":    {[]string{""}, "127.1.16.11"},
		"the last of the block is in use too": {[]string{"127.1.16.31"}, "127.1.16.11"},
	} {
		t.Run(name, func(t *testing.T) {
			used := map[netip.Addr]bool{}
			for _, a := range c.used {
				addr, _ := netip.ParseAddr(a)
				used[addr] = true
			}
			got, err := freeAddress(netip.MustParsePrefix(block), used)
			if (err == nil) != (c.want != "") || err == nil && got.String() != c.want {
				t.Errorf("%s, %v; want %s", got, err, c.want)
			}
		})
	}
}
