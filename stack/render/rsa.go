package render

import (
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"math/big"
)

// generateRSAKey makes a key from a stream: the same stream gives the same key, which Go's own generator
// does not promise. Both primes have their two highest bits set, so that the product is as long as
// it should be.
func generateRSAKey(stream io.Reader, bits int) (*rsa.PrivateKey, error) {
	e, one := big.NewInt(65537), big.NewInt(1)
	for range 100 {
		p, err := generatePrime(stream, bits/2)
		if err != nil {
			return nil, err
		}
		q, err := generatePrime(stream, bits/2)
		if err != nil {
			return nil, err
		}
		phi := new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one))
		d := new(big.Int).ModInverse(e, phi)
		if p.Cmp(q) == 0 || d == nil {
			continue
		}
		key := &rsa.PrivateKey{PublicKey: rsa.PublicKey{N: new(big.Int).Mul(p, q), E: int(e.Int64())}, D: d, Primes: []*big.Int{p, q}}
		key.Precompute()
		if err := key.Validate(); err != nil {
			return nil, fmt.Errorf("making an RSA key: %w", err)
		}
		return key, nil
	}
	return nil, errors.New("making an RSA key: no primes were found")
}

func generatePrime(stream io.Reader, bits int) (*big.Int, error) {
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
