package apply

import (
	"errors"
	"testing"
)

func TestIsEstablished(t *testing.T) {
	for _, tc := range []struct {
		name, status string
		want, never  bool
	}{
		{"nothing is known", "{}", false, false},
		{"names are accepted", `{conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "False"}]}`, false, false},
		{"it is served", `{conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]}`, true, false},
		{"names are taken", `{conditions: [{type: Established, status: "True"}, {type: NamesAccepted, status: "False", message: why}]}`, false, true},
		{"conditions are none", "{conditions: [x]}", false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := isEstablished(parse(t, "{status: "+tc.status+"}")[0])
			if got != tc.want || errors.Is(err, ErrRefused) != tc.never {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}
