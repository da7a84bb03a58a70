package render

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// allKeys asks for a key of each kind, and has certificates signed by each.
const allKeys = `
{{- $ca := genCA "ca" 365 }}
{{- $signed := genSignedCert "server" (list "127.0.0.1") (list "secret-argument") 30 $ca }}
{{- $ecdsa := genPrivateKey "ecdsa" }}
{{- $ed25519 := genPrivateKey "ed25519" -}}
{{ $ca.Key }}{{ $signed.Key }}{{ $ecdsa }}{{ $ed25519 }}{{ (genSelfSignedCert "self" nil nil 30).Key }}|
{{- randAlphaNum 12 }}{{ htpasswd "u" "p" }}|
{{- $ca.Cert }}{{ $signed.Cert }}
{{- (genCAWithKey "ecdsa" 30 $ecdsa).Cert }}{{ (genCAWithKey "ed25519" 30 $ed25519).Cert }}`

// keysOfAllKeys is how many private keys it asks for.
const keysOfAllKeys = 5

func newTestRecord(t *testing.T) Record {
	t.Helper()
	r, err := NewRecord(rand.Reader, time.Unix(1700000000, 0))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// renderAllKeys gives keys, passwords and certificates, and the keys that were made.
func renderAllKeys(t *testing.T, r Record) (keys, passwords, certs string, made Keys) {
	t.Helper()
	in := inputOf(job(map[string]string{"templates/x.yaml": allKeys}))
	in.Record = r
	o := renderOutput(t, in)
	if o.Err != nil {
		t.Fatal(o.Err)
	}
	parts := strings.Split(o.Files[0].Text, "|")
	return parts[0], parts[1], parts[2], o.NewKeys
}

func TestKeysAreRecorded(t *testing.T) {
	empty := newTestRecord(t)
	keys, passwords, certs, made := renderAllKeys(t, empty)
	if len(made) != keysOfAllKeys {
		t.Fatalf("%d keys were made", len(made))
	}
	// As the record is kept: in JSON.
	b, err := json.Marshal(empty.WithKeys(made))
	if err != nil {
		t.Fatal(err)
	}
	var stored Record
	if err := json.Unmarshal(b, &stored); err != nil {
		t.Fatal(err)
	}
	sameKeys, samePasswords, sameCerts, more := renderAllKeys(t, stored)
	d := cmp.Diff([]string{keys, passwords, certs}, []string{sameKeys, samePasswords, sameCerts})
	if d != "" || len(more) > 0 {
		t.Errorf("from the record it differs, and makes %d keys: %s", len(more), d)
	}
	if bytes.Contains(b, []byte("secret-argument")) || bytes.Contains(b, []byte("x.yaml")) {
		t.Error("the record has arguments and names of files in it")
	}
	// Keys that were made and not stored are lost; nothing else is.
	otherKeys, samePasswords, otherCerts, more := renderAllKeys(t, empty)
	if otherKeys == keys || otherCerts == certs || samePasswords != passwords || len(more) != keysOfAllKeys {
		t.Error("keys that were not stored are there again, or a password has changed")
	}
	renewed := stored
	renewed.Renewed = stored.Time.Add(24 * time.Hour)
	sameKeys, samePasswords, otherCerts, more = renderAllKeys(t, renewed)
	if sameKeys != keys || samePasswords != passwords || otherCerts == certs || len(more) > 0 {
		t.Error("renewing must change certificates, and nothing else")
	}
}

func TestOneMissingKeyIsMade(t *testing.T) {
	r := newTestRecord(t)
	_, _, _, made := renderAllKeys(t, r)
	var lost string
	for lost = range made {
		break
	}
	was := made[lost]
	delete(made, lost)
	r = r.WithKeys(made)
	_, _, _, again := renderAllKeys(t, r)
	if len(again) != 1 || len(again[lost]) == 0 || bytes.Equal(again[lost], was) {
		t.Errorf("%d keys were made", len(again))
	}
}

func TestKeysOfARecordThatAreDamaged(t *testing.T) {
	r := newTestRecord(t)
	_, _, _, made := renderAllKeys(t, r)
	for id := range made {
		made[id] = []byte("damaged")
	}
	in := inputOf(job(map[string]string{"templates/x.yaml": allKeys}))
	in.Record = r.WithKeys(made)
	if o := renderOutput(t, in); o.Err == nil || !strings.Contains(o.Err.Reason, "reading a private key of the record") {
		t.Error(o.Err)
	}
}

// The limit is one for all charts together, and counts keys that are recorded already.
func TestTooManyKeys(t *testing.T) {
	jobOf := func(name string, keys int) Job {
		template := fmt.Sprintf(`{{ range %d }}{{ genPrivateKey "ed25519" }}{{ end }}`, keys)
		return Job{Name: name, Chart: chartOf(map[string]string{"templates/x.yaml": template})}
	}
	in := inputOf(jobOf("a", maxKeys-1), jobOf("b", 1))
	in.Record = newTestRecord(t)
	out, err := new(Renderer).Render(t.Context(), in)
	if err != nil || out[0].Err != nil || out[1].Err != nil {
		t.Fatal(err, out[0].Err, out[1].Err)
	}
	if len(out[0].NewKeys) != maxKeys-1 || len(out[1].NewKeys) != 1 {
		t.Fatal(len(out[0].NewKeys), len(out[1].NewKeys))
	}
	in.Record = in.Record.WithKeys(out[0].NewKeys).WithKeys(out[1].NewKeys)
	in.Jobs[1] = jobOf("b", 2)
	const want = "the charts of a release may ask for 256 private keys together, and this is one more"
	out, err = new(Renderer).Render(t.Context(), in)
	if err != nil || out[0].Err != nil || out[1].Err == nil || !strings.Contains(out[1].Err.Error(), want) {
		t.Error(err, out[0].Err, out[1].Err)
	}
	if out[1].NewKeys != nil {
		t.Error("a chart that fails gives keys")
	}
}

// A record with as many of the largest keys as one rendering may ask for fits into a Secret, and the parent reads that
// many from the child.
func TestLargestRecordFitsIntoASecret(t *testing.T) {
	c := newRandomSource(newTestRecord(t), "")
	if _, err := c.privateKey(c.beginCall("test"), rsa4096); err != nil {
		t.Fatal(err)
	}
	r := c.record.WithKeys(c.newKeys)
	one, _ := json.Marshal(r)
	empty, _ := json.Marshal(c.record)
	entry := len(one) - len(empty) + len(",")
	if total := len(empty) + maxKeys*entry; total > 1<<20-4<<10 || entry > maxKeySize {
		t.Errorf("%d bytes for each key, %d in all", entry, total)
	}
}

func TestForbiddenKeys(t *testing.T) {
	const want = "would give all clusters of this class the same secret"
	for _, template := range []string{`{{ genPrivateKey "ed25519" }}`, `{{ genCA "a" 1 }}`} {
		in := inputOf(job(map[string]string{"templates/x.yaml": template}))
		in.Record, in.ForbidRandomness = newTestRecord(t), true
		if o := renderOutput(t, in); o.Err == nil || !strings.Contains(o.Err.Reason, want) {
			t.Errorf("%s: %v", template, o.Err)
		}
	}
}
