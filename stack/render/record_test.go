package render

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A record that was stored before there were keys means what it meant, and is written as it was.
func TestReadRecordWithoutKeys(t *testing.T) {
	const text = `{"seed":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","time":"2024-01-01T00:00:00Z"}`
	var r Record
	if err := json.Unmarshal([]byte(text), &r); err != nil || r.Validate() != nil {
		t.Fatal(err, r.Validate())
	}
	if d := cmp.Diff(FixedRecord(), r); d != "" {
		t.Error(d)
	}
	r = r.WithKeys(Keys{"a": []byte("b")})
	if b, err := json.Marshal(r); err != nil || string(b) != text {
		t.Errorf("%s, %v", b, err)
	}
}

// Versions before there were keys would ignore them and derive others. They must refuse the record instead: this is
// how they read one.
func TestOlderVersionRefusesRecordWithKeys(t *testing.T) {
	b, err := json.Marshal(newTestRecord(t))
	if err != nil {
		t.Fatal(err)
	}
	var old struct {
		Seed    []byte    `json:"seed"`
		Time    time.Time `json:"time"`
		Renewed time.Time `json:"renewed,omitzero"`
	}
	if err := json.Unmarshal(b, &old); err != nil {
		t.Fatal(err)
	}
	if len(old.Seed) == 32 {
		t.Error("an older version would take it, and change all keys")
	}
	var again Record
	if err := json.Unmarshal(b, &again); err != nil || again.Keys == nil || again.Validate() != nil {
		t.Errorf("no keys yet is not the old form: %+v, %v", again, err)
	}
}

func TestValidateRecord(t *testing.T) {
	long, short := bytes.Repeat([]byte{1}, seedSize), bytes.Repeat([]byte{1}, legacySeedSize)
	now := time.Unix(1700000000, 0)
	for name, c := range map[string]struct {
		record Record
		want   string
	}{
		"seed":          {Record{Seed: short, Time: now}, ""},
		"keys":          {Record{Seed: long, Time: now, Keys: Keys{}}, ""},
		"keys are lost": {Record{Seed: long, Time: now}, "the record has lost its keys"},
		"keys and a short one": {
			Record{Seed: short, Time: now, Keys: Keys{}}, "the record has 32 bytes of seed instead of 48, or no time",
		},
		"no time": {Record{Seed: short}, "the record has 32 bytes of seed instead of 32, or no time"},
		"nothing": {Record{}, "the record has 0 bytes of seed instead of 32, or no time"},
	} {
		got := ""
		if err := c.record.Validate(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWithKeys(t *testing.T) {
	r := Record{Keys: Keys{"a": []byte("1")}}
	more := r.WithKeys(Keys{"a": []byte("2"), "b": []byte("3")})
	if d := cmp.Diff(Keys{"a": []byte("1"), "b": []byte("3")}, more.Keys); d != "" || len(r.Keys) != 1 {
		t.Error(d, r.Keys)
	}
	if same := r.WithKeys(nil); len(same.Keys) != 1 {
		t.Error(same.Keys)
	}
}
