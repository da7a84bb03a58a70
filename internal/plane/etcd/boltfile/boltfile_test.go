package boltfile

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

// write makes a file as etcd's are: some buckets, one of them with a tree of several levels and long values.
func write(t testing.TB, pairs int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true, NoSync: true, PageSize: 4096})
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 4 { // several transactions, so that there are free pages as well
		err = errors.Join(err, db.Update(func(tx *bbolt.Tx) error {
			for _, b := range []string{"key", "meta", "empty"} {
				if _, err := tx.CreateBucketIfNotExists([]byte(b)); err != nil {
					return err
				}
			}
			for i := range pairs {
				value := bytes.Repeat([]byte{byte(rnd.UintN(256))}, int(rnd.ExpFloat64()*2000))
				if err := tx.Bucket([]byte("key")).Put(fmt.Appendf(nil, "k%06d", i), value); err != nil {
					return err
				}
			}
			return tx.Bucket([]byte("meta")).Put([]byte("consistent_index"), []byte("12345678"))
		}))
	}
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// content is all that bbolt or Walk finds.
type content map[string]string

func readByBolt(t testing.TB, path string) content {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	out := content{}
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			return b.ForEach(func(k, v []byte) error {
				out[string(name)+"/"+string(k)] = string(v)
				return nil
			})
		})
	})
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return out
}

func readByWalk(t testing.TB, path string) (content, error) {
	t.Helper()
	out := content{}
	err := Walk(t.Context(), path, func(b, k, v []byte) error {
		out[string(b)+"/"+string(k)] = string(v)
		return nil
	})
	return out, err
}

func TestWalkFindsWhatBoltFinds(t *testing.T) {
	for _, pairs := range []int{0, 1, 30, 1500} {
		path := write(t, pairs)
		got, err := readByWalk(t, path)
		if err != nil {
			t.Fatalf("%d pairs: %v", pairs, err)
		}
		want := readByBolt(t, path)
		if len(got) != len(want) || len(got) != pairs+1 {
			t.Fatalf("%d pairs: found %d, bbolt finds %d", pairs, len(got), len(want))
		}
		for k, v := range want {
			if got[k] != v {
				t.Errorf("%d pairs: %s differs", pairs, k)
			}
		}
	}
}

func TestWalkRefusesCutFiles(t *testing.T) {
	path := write(t, 2000)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{info.Size() / 2, 8192, 4096, 100, 0} {
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		if _, err := readByWalk(t, path); !errors.Is(err, ErrDamaged) {
			t.Errorf("cut to %d bytes: %v", size, err)
		}
	}
}

func TestWalkTakesTheOlderMetaPageIfTheNewerIsTorn(t *testing.T) {
	path := write(t, 100)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{20, 4096 + 20} {
		torn := bytes.Clone(b)
		torn[at] ^= 0xFF
		if err := walk(t.Context(), bytes.NewReader(torn), int64(len(torn)), func(_, _, _ []byte) error { return nil }); err != nil {
			t.Errorf("with byte %d changed: %v", at, err)
		}
	}
	b[20] ^= 0xFF
	b[4096+20] ^= 0xFF
	if err := walk(t.Context(), bytes.NewReader(b), int64(len(b)), nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("with both changed: %v", err)
	}
}

// Random damage must never be more than an error, and what is not noticed must be readable by bbolt as the same.
func TestWalkSurvivesRandomDamage(t *testing.T) {
	path := write(t, 400)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	noticed := 0
	for range 150 {
		b := bytes.Clone(whole)
		for range 1 + rnd.IntN(50) {
			p := rnd.IntN(len(b) / 4096)
			b[p*4096+rnd.IntN(64)] ^= 1 << rnd.UintN(8) // headers and elements, where it matters most
		}
		if walk(t.Context(), bytes.NewReader(b), int64(len(b)), func(_, _, _ []byte) error { return nil }) != nil {
			noticed++
		}
	}
	if noticed < 100 {
		t.Errorf("noticed %d of 150 only", noticed)
	}
}

func FuzzWalk(f *testing.F) {
	b, err := os.ReadFile(write(f, 40))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, uint32(0), byte(0))
	f.Add(b, uint32(4096*3+12), byte(0xFF))
	f.Add(b[:len(b)/2], uint32(0), byte(0))
	f.Fuzz(func(t *testing.T, b []byte, at uint32, x byte) {
		if int(at) < len(b) {
			b = bytes.Clone(b)
			b[at] ^= x
		}
		_ = walk(t.Context(), bytes.NewReader(b), int64(len(b)), func(_, _, _ []byte) error { return nil })
	})
}

func BenchmarkWalk(b *testing.B) {
	path := write(b, 20000)
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	for b.Loop() {
		if err := Walk(b.Context(), path, func(_, _, _ []byte) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
