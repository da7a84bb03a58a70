package render

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
)

// Record is what charts of one cluster get where Helm would use randomness or the clock. Whoever keeps
// it gets the same passwords, keys and certificates at every rendering. It is a secret.
type Record struct {
	Seed []byte    `json:"seed"`
	Time time.Time `json:"time"`
	// Renewed is when certificates begin to be valid, if it is later than Time. Renewing changes
	// certificates, but neither keys nor passwords.
	Renewed time.Time `json:"renewed,omitzero"`
}

const seedSize = 32

// NewRecord makes the record of a cluster, at its first rendering. random is crypto/rand.Reader.
func NewRecord(random io.Reader, now time.Time) (Record, error) {
	r := Record{Seed: make([]byte, seedSize), Time: now.UTC().Truncate(time.Second)}
	if _, err := io.ReadFull(random, r.Seed); err != nil {
		return Record{}, fmt.Errorf("making a record for rendering: %w", err)
	}
	return r, nil
}

// FixedRecord is the same for everybody: for looking at what a stack renders to, never for clusters.
func FixedRecord() Record {
	return Record{Seed: make([]byte, seedSize), Time: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func (r Record) check() error {
	if len(r.Seed) != seedSize || r.Time.IsZero() {
		return fmt.Errorf("the record has %d bytes of seed instead of %d, or no time", len(r.Seed), seedSize)
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
}

func newRandomSource(r Record, job string) *randomSource {
	return &randomSource{record: r, job: job, calls: map[string]uint64{}}
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

// stream gives the endless stream of random bytes for one call of a function.
func (c *randomSource) stream(function string, args ...any) io.Reader {
	if c.forbidden {
		return errorReader{fmt.Errorf("%s would give all clusters of this class the same secret; put it into an add-on", function)}
	}
	mac := hmac.New(sha256.New, c.record.Seed)
	// Quotes keep the parts apart, so that no two different calls have one label.
	label := fmt.Sprintf("%q %q %q %#v", c.job, c.file, function, args)
	_, _ = io.WriteString(mac, label) // a hash takes everything
	_ = binary.Write(mac, binary.BigEndian, c.calls[label])
	c.calls[label]++
	block, err := aes.NewCipher(mac.Sum(nil))
	if err != nil {
		return errorReader{err} // a key of 32 bytes is always one
	}
	return cipher.StreamReader{S: cipher.NewCTR(block, make([]byte, aes.BlockSize)), R: zeroReader{}}
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

type errorReader struct{ err error }

func (b errorReader) Read([]byte) (int, error) { return 0, b.err }
