// Package boltfile reads a bbolt file without trusting one byte of it. bbolt itself maps the file into memory and
// follows what is written there: in a damaged file it panics, faults or runs in circles, none of which a caller can
// catch for certain. Here each page is read, checked and only then followed; what is wrong is an error.
package boltfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// The format of bbolt's files.
const (
	magic, version = 0xED0CDAED, 2

	headerSize  = 16 // of a page
	metaSize    = 64 // behind the header of a meta page
	checkedSize = 56 // as much of it is covered by its checksum
	elementSize = 16 // of branches and leaves
	bucketSize  = 16 // before the page of a bucket that lies within its parent

	branchFlag, leafFlag, metaFlag = 0x01, 0x02, 0x04
	bucketFlag                     = 0x01 // of a leaf's element

	noFreelist = ^uint64(0)
	maxDepth   = 64 // a tree of 2^64 pages with two keys each is not deeper
)

// ErrDamaged is in every error that says that the file is not what bbolt writes.
var ErrDamaged = errors.New("damaged")

func damagef(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrDamaged, fmt.Errorf(format, args...))
}

// Visit is called for each pair of each bucket, in the order of their bytes. The slices are valid during the call.
type Visit func(bucket, key, value []byte) error

// Walk checks the whole file and calls visit for all that is in it. Nobody may write to the file meanwhile. Memory
// does not grow with the file, but for one bit for each page.
func Walk(ctx context.Context, path string, visit Visit) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // read only
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return walk(ctx, f, info.Size(), visit)
}

func walk(ctx context.Context, f io.ReaderAt, size int64, visit Visit) error {
	m, err := readMeta(f, size)
	if err != nil {
		return err
	}
	if need := m.high * uint64(m.pageSize); m.high > uint64(size)/uint64(m.pageSize) { //nolint:gosec // a size
		return damagef("it has %d bytes, but should have %d at least", size, need)
	}
	w := &walker{ctx: ctx, file: f, meta: m, visit: visit, seen: make([]uint64, m.high/64+1)}
	if m.freelist != noFreelist && m.freelist >= m.high {
		return damagef("the list of free pages is page %d of %d", m.freelist, m.high)
	}
	return w.walkRoot()
}

// meta is what the newest valid meta page says.
type meta struct {
	pageSize             int64
	root, freelist, high uint64 // pages; high is the first that was never used
	transaction          uint64
}

// readMeta finds the newer of the two meta pages. One of them may be torn by a crash; then the other counts.
func readMeta(f io.ReaderAt, size int64) (meta, error) {
	first, ok := parseMeta(f, 0, 0)
	sizes := []int64{first.pageSize}
	if !ok {
		sizes = sizes[:0]
		for s := int64(1024); s <= 64<<10; s *= 2 {
			sizes = append(sizes, s)
		}
	}
	for _, s := range sizes {
		second, found := parseMeta(f, s, s)
		if found && (!ok || second.transaction > first.transaction) {
			return second, nil
		}
	}
	if !ok {
		return meta{}, damagef("neither of its two meta pages is valid (%d bytes)", size)
	}
	return first, nil
}

// parseMeta reads the meta page at an offset. want is the page size it must name; 0 means any.
func parseMeta(f io.ReaderAt, offset, want int64) (meta, bool) {
	b := make([]byte, headerSize+metaSize)
	if _, err := f.ReadAt(b, offset); err != nil {
		return meta{}, false
	}
	ne := binary.NativeEndian // bbolt writes structs as they lie in memory
	p := b[headerSize:]
	sum := fnv.New64a()
	_, _ = sum.Write(p[:checkedSize])
	m := meta{
		pageSize: int64(ne.Uint32(p[8:])), root: ne.Uint64(p[16:]), freelist: ne.Uint64(p[32:]), high: ne.Uint64(p[40:]),
		transaction: ne.Uint64(p[48:]),
	}
	ok := ne.Uint32(p) == magic && ne.Uint32(p[4:]) == version && ne.Uint64(p[56:]) == sum.Sum64() &&
		ne.Uint16(b[8:])&metaFlag != 0 && m.pageSize >= 512 && m.pageSize <= 64<<10 && (want == 0 || m.pageSize == want)
	return m, ok
}

// walker goes through the tree of pages once.
type walker struct {
	ctx   context.Context // of one call of Walk
	file  io.ReaderAt
	meta  meta
	visit Visit

	seen    []uint64 // a bit for each page
	pages   int
	buffers [maxDepth][]byte // one for each level, since parents are still needed below
	last    []byte           // the key before, of the bucket that is read
}

// keyRange is what the keys of a page must lie in: from low on, below high. nil means no limit.
type keyRange struct{ low, high []byte }

// walkRoot reads the tree whose leaves name the buckets.
func (w *walker) walkRoot() error {
	return w.walkTree(w.meta.root, 0, keyRange{}, func(key, value []byte, flags uint32) error {
		if flags&bucketFlag == 0 {
			return damagef("there is a value outside of all buckets")
		}
		if len(value) < bucketSize {
			return damagef("the header of bucket %q is too short", key)
		}
		// Both are needed while further pages are read into the same buffers.
		outer := w.last
		w.last = nil
		err := w.walkBucket(bytes.Clone(key), bytes.Clone(value))
		w.last = outer
		return err
	})
}

func (w *walker) walkBucket(name, header []byte) error {
	pair := func(key, value []byte, flags uint32) error {
		if flags&bucketFlag != 0 {
			return damagef("bucket %q has a bucket in it", name)
		}
		return w.visit(name, key, value)
	}
	root := binary.NativeEndian.Uint64(header)
	if root != 0 {
		// The levels of the root's tree are in use.
		return w.walkTree(root, maxDepth/2, keyRange{}, pair)
	}
	return w.walkLeaf(page{id: 0, bytes: header[bucketSize:]}, keyRange{}, pair)
}

type visitPair func(key, value []byte, flags uint32) error

func (w *walker) walkTree(id uint64, depth int, keys keyRange, visit visitPair) error {
	if depth == maxDepth {
		return damagef("page %d lies too deep", id)
	}
	p, err := w.read(id, depth)
	if err != nil {
		return err
	}
	switch p.flags() {
	case leafFlag:
		return w.walkLeaf(p, keys, visit)
	case branchFlag:
		return w.walkBranch(p, depth, keys, visit)
	}
	return damagef("page %d is neither branch nor leaf, but of type %#x", id, p.flags())
}

func (w *walker) walkBranch(p page, depth int, keys keyRange, visit visitPair) error {
	if p.count() == 0 {
		return damagef("branch page %d is empty", p.id)
	}
	for i := range p.count() {
		key, child, err := p.branchElement(i)
		if err != nil {
			return err
		}
		below := keyRange{low: key, high: keys.high}
		if i+1 < p.count() {
			next, _, err := p.branchElement(i + 1)
			if err != nil {
				return err
			}
			below.high = next
		}
		if !keys.contains(key) || below.high != nil && bytes.Compare(key, below.high) >= 0 {
			return damagef("the keys of branch page %d are out of order", p.id)
		}
		if err := w.walkTree(child, depth+1, below, visit); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) walkLeaf(p page, keys keyRange, visit visitPair) error {
	if len(p.bytes) < headerSize || p.flags() != leafFlag {
		return damagef("page %d, a bucket of its own, is no leaf", p.id)
	}
	for i := range p.count() {
		key, value, flags, err := p.leafElement(i)
		if err != nil {
			return err
		}
		if !keys.contains(key) || w.last != nil && bytes.Compare(w.last, key) >= 0 {
			return damagef("the keys of leaf page %d are out of order", p.id)
		}
		w.last = append(w.last[:0], key...)
		if err := visit(key, value, flags); err != nil {
			return err
		}
	}
	return nil
}

func (k keyRange) contains(key []byte) bool {
	return (k.low == nil || bytes.Compare(key, k.low) >= 0) && (k.high == nil || bytes.Compare(key, k.high) < 0)
}

// read reads a page with those that continue it, each of which may be read once only.
func (w *walker) read(id uint64, depth int) (page, error) {
	if w.pages++; w.pages%1024 == 0 && w.ctx.Err() != nil {
		return page{}, w.ctx.Err()
	}
	if id < 2 || id >= w.meta.high {
		return page{}, damagef("page %d of %d is named as a part of a tree", id, w.meta.high)
	}
	if err := w.fill(depth, id, 1); err != nil {
		return page{}, err
	}
	p := page{id: id, bytes: w.buffers[depth]}
	if got := binary.NativeEndian.Uint64(p.bytes); got != id {
		return p, damagef("page %d says that it is page %d", id, got)
	}
	n := uint64(binary.NativeEndian.Uint32(p.bytes[12:])) + 1
	if n > w.meta.high-id {
		return p, damagef("page %d says that it is %d pages long", id, n)
	}
	for i := id; i < id+n; i++ {
		if w.seen[i/64]&(1<<(i%64)) != 0 {
			return p, damagef("page %d is in use twice", i)
		}
		w.seen[i/64] |= 1 << (i % 64)
	}
	if n == 1 {
		return p, nil
	}
	err := w.fill(depth, id, n)
	p.bytes = w.buffers[depth]
	return p, err
}

// fill reads n pages into the buffer of a level.
func (w *walker) fill(depth int, id, n uint64) error {
	size := int(n) * int(w.meta.pageSize) //nolint:gosec // within the file
	if cap(w.buffers[depth]) < size {
		w.buffers[depth] = make([]byte, size)
	}
	w.buffers[depth] = w.buffers[depth][:size]
	if _, err := w.file.ReadAt(w.buffers[depth], int64(id)*w.meta.pageSize); err != nil { //nolint:gosec // within the file
		return fmt.Errorf("reading page %d: %w", id, err)
	}
	return nil
}
