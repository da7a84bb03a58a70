package boltfile

import "encoding/binary"

// page is a page of a tree, with those that continue it.
type page struct {
	id    uint64
	bytes []byte
}

func (p page) flags() uint16 { return binary.NativeEndian.Uint16(p.bytes[8:]) }
func (p page) count() int    { return int(binary.NativeEndian.Uint16(p.bytes[10:])) }

// element is the i-th element behind the header, and all that follows it: positions count from its beginning.
func (p page) element(i int) ([]byte, error) {
	at := headerSize + i*elementSize
	if at+elementSize > len(p.bytes) {
		return nil, damagef("page %d has no room for its %d elements", p.id, p.count())
	}
	return p.bytes[at:], nil
}

// slice is a part of an element.
func (p page) slice(e []byte, from, n uint64) ([]byte, error) {
	if from > uint64(len(e)) || n > uint64(len(e))-from {
		return nil, damagef("an element of page %d lies outside of it", p.id)
	}
	return e[from : from+n], nil
}

func (p page) branchElement(i int) (key []byte, child uint64, err error) {
	e, err := p.element(i)
	if err != nil {
		return nil, 0, err
	}
	ne := binary.NativeEndian
	key, err = p.slice(e, uint64(ne.Uint32(e)), uint64(ne.Uint32(e[4:])))
	return key, ne.Uint64(e[8:]), err
}

func (p page) leafElement(i int) (key, value []byte, flags uint32, err error) {
	e, err := p.element(i)
	if err != nil {
		return nil, nil, 0, err
	}
	ne := binary.NativeEndian
	at, keySize := uint64(ne.Uint32(e[4:])), uint64(ne.Uint32(e[8:]))
	if key, err = p.slice(e, at, keySize); err != nil {
		return nil, nil, 0, err
	}
	value, err = p.slice(e, at+keySize, uint64(ne.Uint32(e[12:])))
	return key, value, ne.Uint32(e), err
}
