package backupfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"github.com/polder-kaas/polder/internal/plane/backup/archive"
)

// ErrWrongKey means that the passphrase or the private keys do not open the backup.
var ErrWrongKey = errors.New("the key does not fit")

// Encryption is how a backup is encrypted.
type Encryption string

// The ways to encrypt a backup.
const (
	Plaintext      Encryption = "plain text"
	WithPassphrase Encryption = "passphrase"
	WithKey        Encryption = "age key"
)

// How the layers begin.
const (
	ageMagic  = "age-encryption.org/v1\n"
	zstdMagic = "\x28\xb5\x2f\xfd"
)

// maxWindow bounds the memory that a file can make its reader take; ours need 4 MiB.
const maxWindow = 16 << 20

// readBufferSize is four chunks of age.
const readBufferSize = 256 << 10

// Reader reads a backup.
type Reader struct {
	Encryption Encryption
	path       string
	file       *os.File
	buffered   *bufio.Reader
}

// Open opens a backup and looks how it is encrypted. Close must be called.
func Open(path string) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, unwrapPathError(err))
	}
	r := &Reader{path: path, file: f, buffered: bufio.NewReaderSize(f, readBufferSize)}
	if r.Encryption, err = detectEncryption(r.buffered); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return r, nil
}

func detectEncryption(b *bufio.Reader) (Encryption, error) {
	const enough = 1024               // for the first lines
	head, err := b.Peek(enough)       // a short file is told below
	if err != nil && len(head) == 0 { // nor is an empty one anything else
		return "", fmt.Errorf("%w: it is empty", archive.ErrDamaged)
	}
	rest, isAge := bytes.CutPrefix(head, []byte(ageMagic))
	switch {
	case isAge && bytes.HasPrefix(rest, []byte("-> scrypt ")):
		return WithPassphrase, nil
	case isAge:
		return WithKey, nil
	case bytes.HasPrefix(head, []byte(zstdMagic)):
		return Plaintext, nil
	}
	return "", fmt.Errorf("%w: it is no backup of Polder", archive.ErrDamaged)
}

// Close closes the file.
func (r *Reader) Close() error { return r.file.Close() }

// Read decrypts and checks the backup; see archive.Read. It can be called once.
func (r *Reader) Read(u Unlock, v archive.Visitor) (archive.Manifest, error) {
	var in io.Reader = r.buffered
	if r.Encryption != Plaintext {
		identities, err := u.identities()
		if err != nil {
			return archive.Manifest{}, err
		}
		if in, err = age.Decrypt(in, identities...); err != nil {
			return archive.Manifest{}, fmt.Errorf("%s: %w", r.path, decryptError(err, r.Encryption))
		}
	}
	z, err := zstd.NewReader(in, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true))
	if err != nil {
		return archive.Manifest{}, err
	}
	defer z.Close()
	m, err := archive.Read(z, v)
	if errors.Is(err, archive.ErrDamaged) || errors.Is(err, archive.ErrNewer) {
		err = fmt.Errorf("%s: %w", r.path, err)
	}
	return m, err
}

func decryptError(err error, e Encryption) error {
	var noMatch *age.NoIdentityMatchError
	switch {
	case errors.As(err, &noMatch) && e == WithPassphrase:
		return fmt.Errorf("%w: the passphrase is not that of the backup", ErrWrongKey)
	case errors.As(err, &noMatch):
		return fmt.Errorf("%w: the backup was encrypted to other keys", ErrWrongKey)
	}
	return fmt.Errorf("%w: %w", archive.ErrDamaged, err)
}
