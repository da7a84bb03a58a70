package render

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/template"
	"time"
)

// removedFuncs are functions that would tell a template about the computer it is rendered on.
var removedFuncs = []string{"env", "expandenv"}

// enterFunction is what each template calls first; see randomSource.enterTemplate.
const enterFunction = "polderEnterTemplate"

// hermeticFuncs gives replacements of all functions that use randomness, the clock, a cluster or the network.
// Helm itself takes out those that read the environment.
func hermeticFuncs(c *randomSource) template.FuncMap {
	f := template.FuncMap{
		enterFunction:   c.enterTemplate,
		"lookup":        func(string, string, string, string) map[string]any { return map[string]any{} },
		"getHostByName": func(string) string { return "" },
		"randBytes":     c.randBytes,
		"randInt":       c.randInt,
		"randAlphaNum":  func(n int) (string, error) { return c.randomString("randAlphaNum", alpha+digits, n) },
		"randAlpha":     func(n int) (string, error) { return c.randomString("randAlpha", alpha, n) },
		"randNumeric":   func(n int) (string, error) { return c.randomString("randNumeric", digits, n) },
		"randAscii":     func(n int) (string, error) { return c.randomString("randAscii", printableASCII(), n) },
		"shuffle":       c.shuffle,
		"uuidv4":        c.uuid,
		"bcrypt":        c.bcrypt,
		"htpasswd":      c.htpasswd,
		"encryptAES":    c.encryptAES,
		"keys":          sortedKeys,
		"values":        sortedValues,
	}
	for name, fn := range c.timeFuncs() {
		f[name] = fn
	}
	for name, fn := range c.certificateFuncs() {
		f[name] = fn
	}
	return f
}

// sortedKeys and sortedValues give a fixed order; the library's give that of a map.
func sortedKeys(dicts ...map[string]any) []string {
	var out []string
	for _, d := range dicts {
		out = append(out, slices.Sorted(maps.Keys(d))...)
	}
	return out
}

func sortedValues(dict map[string]any) []any {
	out := []any{}
	for _, k := range sortedKeys(dict) {
		out = append(out, dict[k])
	}
	return out
}

const (
	digits = "0123456789"
	alpha  = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// printableASCII gives all printable characters of ASCII, with the space.
func printableASCII() string {
	var b strings.Builder
	for r := byte(' '); r < 127; r++ {
		b.WriteByte(r)
	}
	return b.String()
}

// randomBelow gives an evenly chosen number in [0, n): what lies above the last multiple of n is drawn again.
func randomBelow(r io.Reader, n uint64) (uint64, error) {
	var b [8]byte
	for limit := (1 << 63) / n * n; ; {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return 0, err
		}
		if v := binary.BigEndian.Uint64(b[:]) >> 1; v < limit {
			return v % n, nil
		}
	}
}

// maxRandom bounds how many random bytes or characters one call gets.
const maxRandom = 1 << 16

func (c *randomSource) randomString(function, from string, n int) (string, error) {
	if n < 0 || n > maxRandom {
		return "", fmt.Errorf("%s makes up to %d characters, not %d", function, maxRandom, n)
	}
	r, out := c.stream(function, n), make([]byte, n)
	for i := range out {
		k, err := randomBelow(r, uint64(len(from)))
		if err != nil {
			return "", err
		}
		out[i] = from[k]
	}
	return string(out), nil
}

func (c *randomSource) randBytes(n int) (string, error) {
	if n < 0 || n > maxRandom {
		return "", fmt.Errorf("randBytes makes up to %d bytes, not %d", maxRandom, n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(c.stream("randBytes", n), b)
	return base64.StdEncoding.EncodeToString(b), err
}

func (c *randomSource) randInt(low, high int) (int, error) {
	if low >= high {
		return 0, fmt.Errorf("randInt needs a second number above the first, not %d and %d", low, high)
	}
	k, err := randomBelow(c.stream("randInt", low, high),
		uint64(high)-uint64(low)) //nolint:gosec // their difference is right even if one is negative
	return low + int(k), err //nolint:gosec // below high
}

func (c *randomSource) shuffle(s string) (string, error) {
	r, out := c.stream("shuffle", s), []rune(s)
	for i := len(out) - 1; i > 0; i-- {
		k, err := randomBelow(r, uint64(i)+1)
		if err != nil {
			return "", err
		}
		out[i], out[k] = out[k], out[i]
	}
	return string(out), nil
}

func (c *randomSource) uuid() (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(c.stream("uuidv4"), b[:]); err != nil {
		return "", err
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80 // version 4, as RFC 9562 has it
	s := hex.EncodeToString(b[:])
	return strings.Join([]string{s[:8], s[8:12], s[12:16], s[16:20], s[20:]}, "-"), nil
}

// encryptAES encrypts with AES-256-CBC and puts the vector in front, as decryptAES of the template library reads
// it.
func (c *randomSource) encryptAES(password, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	key := make([]byte, 32)
	copy(key, password)
	block, err := aes.NewCipher(key)
	if err != nil {
		return "", err
	}
	pad := aes.BlockSize - len(text)%aes.BlockSize
	plain := append([]byte(text), strings.Repeat(string(rune(pad)), pad)...)
	out := make([]byte, aes.BlockSize+len(plain))
	if _, err := io.ReadFull(c.stream("encryptAES", password, text), out[:aes.BlockSize]); err != nil {
		return "", err
	}
	cipher.NewCBCEncrypter(block, out[:aes.BlockSize]).CryptBlocks(out[aes.BlockSize:], plain)
	return base64.StdEncoding.EncodeToString(out), nil
}

// timeFuncs are the functions that use the clock, or the time zone of the computer: all times are UTC.
func (c *randomSource) timeFuncs() template.FuncMap {
	now := func() time.Time { return c.record.Time.UTC() }
	at := func(v any) time.Time {
		switch v := v.(type) {
		case time.Time:
			return v
		case *time.Time:
			return *v
		case int64:
			return time.Unix(v, 0)
		case int:
			return time.Unix(int64(v), 0)
		case int32:
			return time.Unix(int64(v), 0)
		}
		return now()
	}
	inZone := func(layout string, v any, zone string) (string, error) {
		if zone != "UTC" && zone != "Local" && zone != "" {
			return "", fmt.Errorf("the time zone %.40q is not known here; only UTC is", zone)
		}
		return at(v).UTC().Format(layout), nil
	}
	parse := func(layout, s string) (time.Time, error) { return time.ParseInLocation(layout, s, time.UTC) }
	return template.FuncMap{
		"now":            now,
		"ago":            func(v any) string { return now().Sub(at(v)).Round(time.Second).String() },
		"date":           func(layout string, v any) (string, error) { return inZone(layout, v, "UTC") },
		"dateInZone":     inZone,
		"date_in_zone":   inZone,
		"htmlDate":       func(v any) (string, error) { return inZone(time.DateOnly, v, "UTC") },
		"htmlDateInZone": func(v any, zone string) (string, error) { return inZone(time.DateOnly, v, zone) },
		"toDate":         func(layout, s string) time.Time { t, _ := parse(layout, s); return t }, // as the library does
		"mustToDate":     parse,
		"durationRound":  func(v any) string { return roundDuration(v, now()) },
	}
}

// roundDuration keeps the largest unit only: 2h, 3d, 4mo.
func roundDuration(v any, now time.Time) string {
	var d time.Duration
	switch v := v.(type) {
	case string:
		d, _ = time.ParseDuration(v)
	case int64:
		d = time.Duration(v)
	case time.Time:
		d = now.Sub(v)
	}
	const day = 24 * time.Hour
	for _, u := range []struct {
		of   time.Duration
		name string
	}{{365 * day, "y"}, {30 * day, "mo"}, {day, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if n := d.Abs(); n > u.of {
			return fmt.Sprintf("%d%s", n/u.of, u.name)
		}
	}
	return "0s"
}
