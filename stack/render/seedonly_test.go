package render

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// seedOnlyOutputs has a line for each function whose result is derived from the seed. Keys are hashed, so that no
// file of ours looks like a leaked one.
const seedOnlyOutputs = `
{{- $ca := genCA "ca" 365 }}
{{- $signed := genSignedCert "server" (list "127.0.0.1") (list "server.example.org") 30 $ca }}
{{- $self := genSelfSignedCert "self" (list) (list "self.example.org") 30 }}
{{- $ecdsa := genPrivateKey "ecdsa" }}
{{- $withECDSA := genCAWithKey "ecdsa" 365 $ecdsa -}}
genPrivateKey rsa: {{ genPrivateKey "rsa" | sha256sum }}
genPrivateKey ecdsa: {{ $ecdsa | sha256sum }}
genPrivateKey ed25519: {{ genPrivateKey "ed25519" | sha256sum }}
genCA: {{ $ca.Key | sha256sum }} {{ $ca.Cert | sha256sum }}
genSignedCert: {{ $signed.Key | sha256sum }} {{ $signed.Cert | sha256sum }}
genSelfSignedCert: {{ $self.Key | sha256sum }} {{ $self.Cert | sha256sum }}
genCAWithKey: {{ $withECDSA.Cert | sha256sum }}
randAlphaNum: {{ randAlphaNum 12 }}
uuidv4: {{ uuidv4 }}
htpasswd: {{ htpasswd "user" "password" }}
`

// Clusters whose record is a seed alone must keep all passwords, keys and certificates. If a new version of Go
// encodes certificates differently, the lines of those may change; a line with a key never may.
func TestSeedOnlyRecordKeepsItsOutputs(t *testing.T) {
	slow := &Renderer{Limits: Limits{CPU: time.Minute}} // RSA keys take long on a slow computer
	out, err := slow.Render(t.Context(), inputOf(job(map[string]string{"templates/x.yaml": seedOnlyOutputs})))
	if err != nil || out[0].Err != nil {
		t.Fatal(err, out)
	}
	got := out[0].Files[0].Text
	const file = "testdata/seedonly.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Error("the secrets of clusters that are there would change:", d)
	}
}
