package render

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
)

// Record is what charts of one cluster get where Helm would use randomness or the clock. Whoever keeps
// it gets the same passwords, keys and certificates at every rendering. It is a secret.
//
// A record with keys holds the private keys that charts were given: those that a rendering makes come back with it
// (Output.NewKeys) and must be stored, by WithKeys, before anything that was rendered is used. Passwords and serial
// numbers are derived from the seed. A record without keys (nil) is of the old form, where keys are derived as well.
type Record struct {
	Seed []byte    `json:"seed"`
	Time time.Time `json:"time"`
	// Renewed is when certificates begin to be valid, if it is later than Time. Renewing changes
	// certificates, but neither keys nor passwords.
	Renewed time.Time `json:"renewed,omitzero"`
	Keys    Keys      `json:"keys,omitzero"`
}

const (
	// seedSize is that of records with keys. Versions that know no such records would ignore the keys and derive
	// others; but they refuse a seed that is not as long as they know it, so nothing changes under them.
	seedSize = 48
	// legacySeedSize is that of records without keys.
	legacySeedSize = 32
)

// NewRecord makes the record of a cluster, at its first rendering. random is crypto/rand.Reader.
func NewRecord(random io.Reader, now time.Time) (Record, error) {
	r := Record{Seed: make([]byte, seedSize), Time: now.UTC().Truncate(time.Second), Keys: Keys{}}
	if _, err := io.ReadFull(random, r.Seed); err != nil {
		return Record{}, fmt.Errorf("making a record for rendering: %w", err)
	}
	return r, nil
}

// FixedRecord is the same for everybody: for looking at what a stack renders to, never for clusters. It has no keys,
// so that they are always the same too.
func FixedRecord() Record {
	return Record{Seed: make([]byte, legacySeedSize), Time: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)}
}

// WithKeys returns the record with keys that were made in a rendering. Those that it has already stay. A record of the
// old form gets none.
func (r Record) WithKeys(made Keys) Record {
	if r.Keys == nil || len(made) == 0 {
		return r
	}
	all := maps.Clone(made)
	maps.Copy(all, r.Keys)
	r.Keys = all
	return r
}

// Validate says whether the record is whole. One that has lost its keys is not taken for one of the old form.
func (r Record) Validate() error {
	want := legacySeedSize
	if r.Keys != nil {
		want = seedSize
	}
	if r.Keys == nil && len(r.Seed) == seedSize {
		return errors.New("the record has lost its keys")
	}
	if len(r.Seed) != want || r.Time.IsZero() {
		return fmt.Errorf("the record has %d bytes of seed instead of %d, or no time", len(r.Seed), want)
	}
	return nil
}

// randomSource gives every call of a random function its own stream. What a call gets depends on the
// template file it comes from, the function and its arguments, and on how many such calls came before:
// so a new template in a chart does not change the passwords of the others.
type randomSource struct {
	record Record
	job    string
	file   string
	calls  map[string]uint64

	forbidden bool // random functions fail
	expires   *time.Time
	newKeys   Keys // that were made because the record has none for a call
	keysLeft  *int // how many the charts of this rendering may still ask for
}

func newRandomSource(r Record, job string) *randomSource {
	left := maxKeys
	return &randomSource{record: r, job: job, calls: map[string]uint64{}, newKeys: Keys{}, keysLeft: &left}
}

// enterTemplate is called by every template when it begins. The file that counts is the one Helm executes,
// not one that it includes: that gets the data, and so the name, of the file that includes it. The chart's
// own name does not count: it may have the version of Kubernetes in it, and passwords must outlive that.
func (c *randomSource) enterTemplate(dot any) string {
	if m, ok := dot.(map[string]any); ok {
		dot = common.Values(m)
	}
	data, _ := dot.(common.Values)
	template, _ := data["Template"].(common.Values)
	if name, ok := template["Name"].(string); ok {
		_, c.file, _ = strings.Cut(name, "/")
	}
	return ""
}

// randomCall is one call of a random function.
type randomCall struct {
	identity string    // of its private key in the record; a hash, since arguments may be secret, or long
	stream   io.Reader // endless random bytes, its own
	err      error     // why it gets nothing; the stream fails with it too
}

// stream gives the endless stream of random bytes for one call of a function.
func (c *randomSource) stream(function string, args ...any) io.Reader {
	return c.beginCall(function, args...).stream
}

func (c *randomSource) beginCall(function string, args ...any) randomCall {
	if c.forbidden {
		const reason = "%s would give all clusters of this class the same secret; put it into an add-on"
		return failedCall(fmt.Errorf(reason, function))
	}
	// Quotes keep the parts apart, so that no two different calls have one label.
	label := fmt.Sprintf("%q %q %q %#v", c.job, c.file, function, args)
	call := binary.BigEndian.AppendUint64([]byte(label), c.calls[label])
	c.calls[label]++
	mac := hmac.New(sha256.New, c.record.Seed)
	_, _ = mac.Write(call) // a hash takes everything
	block, err := aes.NewCipher(mac.Sum(nil))
	if err != nil {
		return failedCall(err) // a key of 32 bytes is always one
	}
	return randomCall{
		identity: fmt.Sprintf("%x", sha256.Sum256(call)),
		stream:   cipher.StreamReader{S: cipher.NewCTR(block, make([]byte, aes.BlockSize)), R: zeroReader{}},
	}
}

func failedCall(err error) randomCall { return randomCall{stream: errorReader{err}, err: err} }

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

type errorReader struct{ err error }

func (b errorReader) Read([]byte) (int, error) { return 0, b.err }
