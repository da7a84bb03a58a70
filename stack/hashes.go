package stack

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/version"
)

// Hashes are of the parts of a stack's source, as hashes.json has them: a build compares them with
// those of the last release to find out which parts have changed.
type Hashes struct {
	ClusterStack       string `json:"clusterStack"` // everything
	ClusterAddonDir    string `json:"clusterAddonDir"`
	ClusterAddonValues string `json:"clusterAddonValues"`
	NodeImageDir       string `json:"nodeImageDir,omitempty"`
	// What follows is not known to the tools that came before: a change of the class alone, of the
	// stages alone or of a locked dependency alone was none to them.
	ClusterClassDir    string `json:"clusterClassDir,omitempty"`
	ClusterAddonConfig string `json:"clusterAddonConfig,omitempty"`
	Lock               string `json:"lock,omitempty"`
}

// shortHashLength is how much of a hash is in a version.
const shortHashLength = 7

// HashSource computes the hashes of a source directory.
func HashSource(t archive.Tree) Hashes {
	h := Hashes{
		ClusterStack:    hashTree(t),
		ClusterAddonDir: hashDir(t, addonDir),
		ClusterClassDir: hashDir(t, classDir),
	}
	for name, into := range map[string]*string{addonValuesFile: &h.ClusterAddonValues,
		addonConfigFile: &h.ClusterAddonConfig, LockFile: &h.Lock} {
		if b, ok := t[name]; ok {
			sum := sha256.Sum256(b)
			*into = encodeHash(sum[:])
		}
	}
	for _, dir := range []string{"node-images", "node-image"} { // one tool reads the one, another the other
		if h.NodeImageDir == "" {
			h.NodeImageDir = hashDir(t, dir)
		}
	}
	if b, ok := t[nodeImagesFile]; ok { // it is what is released, whatever the directories have
		sum := sha256.Sum256(b)
		h.NodeImageDir = encodeHash(sum[:])
	}
	return h
}

// ShortHash is the beginning of the hash of everything, as versions in mode hash have it.
func (h Hashes) ShortHash() string {
	n := min(shortHashLength, len(h.ClusterStack))
	for n < len(h.ClusterStack) && !version.IsValidInChartVersion(h.ClusterStack[:n]) {
		n++ // a number with a zero in front is no part of a version to Helm
	}
	return h.ClusterStack[:n]
}

// SameContent says whether releases of both sources would be the same. Where one of both does not know the
// hash of its class, the hash of everything decides.
func (h Hashes) SameContent(o Hashes) bool {
	if h.ClusterClassDir == "" || o.ClusterClassDir == "" {
		return h.ClusterStack == o.ClusterStack
	}
	return h.ClusterClassDir == o.ClusterClassDir && h.SameAddons(o) && h.NodeImageDir == o.NodeImageDir
}

// SameAddons says whether both have the same add-ons, with their values, stages and dependencies.
func (h Hashes) SameAddons(o Hashes) bool {
	return h.ClusterAddonDir == o.ClusterAddonDir && h.ClusterAddonValues == o.ClusterAddonValues &&
		h.ClusterAddonConfig == o.ClusterAddonConfig && h.Lock == o.Lock
}

// ParseHashes reads hashes.json.
func ParseHashes(b []byte) (h Hashes, err error) {
	if err := json.Unmarshal(b, &h); err != nil {
		return h, fmt.Errorf("%s: %w", hashesFile, err)
	}
	return h, nil
}

// hashDir hashes what lies below a directory; the hash is empty if there is no such directory.
func hashDir(t archive.Tree, dir string) string {
	sub := t.Sub(dir)
	if len(sub) == 0 {
		return ""
	}
	return hashTree(sub)
}

// hashTree computes the hash Go modules have, "h1": over a list of the files' own hashes and names.
func hashTree(t archive.Tree) string {
	sum := sha256.New()
	for _, name := range t.Names() {
		fmt.Fprintf(sum, "%x  %s\n", sha256.Sum256(t[name]), name)
	}
	return encodeHash(sum.Sum(nil))
}

// encodeHash keeps of base64 what may be part of a version: lower-case letters and digits.
func encodeHash(sum []byte) string {
	return strings.ToLower(strings.NewReplacer("/", "", "=", "", "+", "").Replace(base64.StdEncoding.EncodeToString(sum)))
}
