package integrity

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"math"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
)

// pairSum is the checksum of one pair in a bucket, shortSum as much of it as is kept for each revision.
type (
	pairSum  [sha256.Size]byte
	shortSum [8]byte
)

func shorten(s pairSum) shortSum { return shortSum(s[:8]) }

// pairHash makes the checksum of each pair, and one of all of them in their order.
type pairHash struct{ one, all hash.Hash }

func newPairHash() pairHash { return pairHash{one: sha256.New(), all: sha256.New()} }

func (h pairHash) add(bucket, key, value []byte) (sum pairSum) {
	var lengths [8]byte
	binary.BigEndian.PutUint32(lengths[:], uint32(len(bucket))) //nolint:gosec // bbolt's keys are shorter
	binary.BigEndian.PutUint32(lengths[4:], uint32(len(key)))   //nolint:gosec // as above
	h.one.Reset()
	for _, b := range [][]byte{lengths[:], bucket, key, value} {
		_, _ = h.one.Write(b) // a hash never fails
	}
	h.one.Sum(sum[:0])
	_, _ = h.all.Write(sum[:])
	return sum
}

func (h pairHash) total() string { return hex.EncodeToString(h.all.Sum(nil)) }

// revision is the key of a change of the store: a transaction, and a change within it.
type revision struct{ main, sub int64 }

// lastRevision is behind all others.
var lastRevision = revision{main: math.MaxInt64, sub: math.MaxInt64}

func (r revision) before(o revision) bool {
	return r.main < o.main || r.main == o.main && r.sub < o.sub
}

// parseRevision reads a key of etcd's: eight bytes, an underscore, eight bytes, and a "t" if something was deleted.
func parseRevision(key []byte) (revision, bool) {
	if (len(key) != 17 && (len(key) != 18 || key[17] != 't')) || key[8] != '_' {
		return revision{}, false
	}
	main, sub := int64(binary.BigEndian.Uint64(key)), int64(binary.BigEndian.Uint64(key[9:])) //nolint:gosec // checked
	return revision{main: main, sub: sub}, main >= 0 && sub >= 0
}

// checkValue is for revisions without a record: etcd ends the process at a value that it cannot decode.
func checkValue(rev revision, value []byte) error {
	if err := proto.Unmarshal(value, &mvccpb.KeyValue{}); err != nil {
		return damagef(false, "revision %d cannot be decoded", rev.main)
	}
	return nil
}

// nameOf is the name of what a revision changed, if it can still be read.
func nameOf(value []byte) string {
	var kv mvccpb.KeyValue
	if proto.Unmarshal(value, &kv) != nil || len(kv.GetKey()) == 0 {
		return "which cannot be decoded"
	}
	for _, c := range kv.GetKey() {
		if c < ' ' || c > '~' {
			return "whose name is unreadable"
		}
	}
	return string(kv.GetKey())
}
