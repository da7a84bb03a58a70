package render

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"math/big"
)

// Keys of records that hold a seed and no keys are derived from the seed, by the generators in this file. Such records
// are those of clusters that were made before keys were recorded, and FixedRecord. Nothing here may change, or these
// clusters get other keys; nothing new may use it: privateKey makes keys with the standard library and records them.

// deriveKey makes a key from a stream: the same stream gives the same key, which Go's own generators do not promise.
func deriveKey(stream io.Reader, kind keyKind) (crypto.Signer, error) {
	switch kind {
	case rsa2048:
		return deriveRSAKey(stream, 2048)
	case rsa4096:
		return deriveRSAKey(stream, 4096)
	case ecdsaP256:
		return deriveECDSAKey(stream)
	case ed25519Key:
		return deriveEd25519Key(stream)
	}
	return nil, fmt.Errorf("keys of the kind %d cannot be derived", kind)
}

func deriveEd25519Key(stream io.Reader) (ed25519.PrivateKey, error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(stream, seed); err != nil {
		return nil, err
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// deriveECDSAKey takes a number below the order of the curve from a stream, as FIPS 186-5 A.2.1 does, with 64
// bits to spare.
func deriveECDSAKey(stream io.Reader) (*ecdsa.PrivateKey, error) {
	curve := elliptic.P256()
	b := make([]byte, 40)
	if _, err := io.ReadFull(stream, b); err != nil {
		return nil, err
	}
	one := big.NewInt(1)
	d := new(big.Int).SetBytes(b)
	d.Mod(d, new(big.Int).Sub(curve.Params().N, one)).Add(d, one)
	return ecdsa.ParseRawPrivateKey(curve, d.FillBytes(make([]byte, 32)))
}

// deriveRSAKey takes primes from a stream. Both have their two highest bits set, so that the product is as long as it
// should be.
func deriveRSAKey(stream io.Reader, bits int) (*rsa.PrivateKey, error) {
	e, one := big.NewInt(65537), big.NewInt(1)
	for range 100 {
		p, err := derivePrime(stream, bits/2)
		if err != nil {
			return nil, err
		}
		q, err := derivePrime(stream, bits/2)
		if err != nil {
			return nil, err
		}
		phi := new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one))
		d := new(big.Int).ModInverse(e, phi)
		if p.Cmp(q) == 0 || d == nil {
			continue
		}
		public := rsa.PublicKey{N: new(big.Int).Mul(p, q), E: int(e.Int64())}
		key := &rsa.PrivateKey{PublicKey: public, D: d, Primes: []*big.Int{p, q}}
		key.Precompute()
		if err := key.Validate(); err != nil {
			return nil, fmt.Errorf("making an RSA key: %w", err)
		}
		return key, nil
	}
	return nil, errors.New("making an RSA key: no primes were found")
}

func derivePrime(stream io.Reader, bits int) (*big.Int, error) {
	b := make([]byte, bits/8)
	p, small := new(big.Int), smallPrimes(2000)
	for range 100_000 {
		if _, err := io.ReadFull(stream, b); err != nil {
			return nil, err
		}
		b[0] |= 0xc0
		b[len(b)-1] |= 1
		if !isDivisible(p.SetBytes(b), small) && p.ProbablyPrime(20) {
			return p, nil
		}
	}
	return nil, errors.New("no prime was found")
}

// isDivisible rules out most numbers that are no primes faster than the real test.
func isDivisible(n *big.Int, by []int64) bool {
	var rest, d big.Int
	for _, p := range by {
		if rest.Mod(n, d.SetInt64(p)).Sign() == 0 {
			return true
		}
	}
	return false
}

// smallPrimes gives the odd primes below a number.
func smallPrimes(below int64) (out []int64) {
	for n := int64(3); n < below; n += 2 {
		if big.NewInt(n).ProbablyPrime(0) {
			out = append(out, n)
		}
	}
	return out
}
