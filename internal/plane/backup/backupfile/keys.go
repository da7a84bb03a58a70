package backupfile

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"filippo.io/age"
)

// ErrNoKey means that nothing says how a backup is to be encrypted.
var ErrNoKey = errors.New("a backup holds the private keys of the plane")

// Keys says to whom a backup is encrypted. Exactly one way may be chosen; passphrases and keys do not mix.
type Keys struct {
	Recipients     []string // public age keys, age1…
	RecipientsFile string   // file with one on each line
	PassphraseFile string   // file whose first line is the passphrase
	Passphrase     string
	Plaintext      bool // not at all

	workFactor int // of scrypt, as a power of two; 0 means age's own, a second's work. Tests have many passphrases
}

// IsEmpty says whether no way was chosen.
func (k Keys) IsEmpty() bool {
	return len(k.Recipients) == 0 && k.RecipientsFile == "" && k.PassphraseFile == "" && k.Passphrase == "" && !k.Plaintext
}

// Check says what is wrong with the choice. It reads the files.
func (k Keys) Check() error {
	_, err := k.recipients()
	return err
}

// recipients reads the keys; there are none for a backup that is not encrypted.
func (k Keys) recipients() ([]age.Recipient, error) {
	chosen := 0
	for _, is := range []bool{
		len(k.Recipients) > 0 || k.RecipientsFile != "", k.PassphraseFile != "", k.Passphrase != "", k.Plaintext,
	} {
		if is {
			chosen++
		}
	}
	if chosen > 1 {
		return nil, errors.New("recipients, a passphrase and plain text exclude each other; choose one")
	}
	switch {
	case chosen == 0:
		return nil, ErrNoKey
	case k.Plaintext:
		return nil, nil
	case k.Passphrase != "":
		return k.passphraseRecipient(k.Passphrase)
	case k.PassphraseFile != "":
		p, err := ReadPassphrase(k.PassphraseFile)
		if err != nil {
			return nil, err
		}
		return k.passphraseRecipient(p)
	}
	return k.parseRecipients()
}

func (k Keys) parseRecipients() ([]age.Recipient, error) {
	var all []age.Recipient
	for _, text := range k.Recipients {
		if strings.HasPrefix(text, "AGE-SECRET-KEY-") {
			// Not repeated in the error: it ends up in logs.
			return nil, errors.New("a recipient is a private key; give the public one, which begins with age1")
		}
		r, err := age.ParseRecipients(strings.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("recipient %q is no public age key, which begins with age1", text)
		}
		all = append(all, r...)
	}
	if k.RecipientsFile == "" {
		return all, nil
	}
	f, err := os.Open(k.RecipientsFile)
	if err != nil {
		return nil, fmt.Errorf("reading recipients: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	more, err := age.ParseRecipients(f)
	if err != nil {
		return nil, fmt.Errorf("%s has a line that is no public age key, which begins with age1", k.RecipientsFile)
	}
	return append(all, more...), nil
}

func (k Keys) passphraseRecipient(p string) ([]age.Recipient, error) {
	r, err := age.NewScryptRecipient(p)
	if err != nil {
		return nil, err
	}
	if k.workFactor > 0 {
		r.SetWorkFactor(k.workFactor)
	}
	return []age.Recipient{r}, nil
}

// maxPassphrase bounds what is read of a file that may be a wrong one.
const maxPassphrase = 4096

// ReadPassphrase returns the first line of a file.
func ReadPassphrase(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", fmt.Errorf("reading the passphrase: %w", err)
	}
	if info.Size() > maxPassphrase {
		return "", fmt.Errorf("%s is too large for a file with a passphrase", file)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading the passphrase: %w", err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	if line = strings.TrimRight(line, "\r"); line == "" {
		return "", fmt.Errorf("the first line of %s, the passphrase, is empty", file)
	}
	return line, nil
}

// Unlock says how a backup is decrypted. Both may be empty for one that is not encrypted.
type Unlock struct {
	IdentityFile string // file with private age keys
	Passphrase   string
}

func (u Unlock) identities() ([]age.Identity, error) {
	if u.IdentityFile == "" {
		i, err := age.NewScryptIdentity(u.Passphrase)
		if err != nil {
			return nil, err
		}
		return []age.Identity{i}, nil
	}
	f, err := os.Open(u.IdentityFile)
	if err != nil {
		return nil, fmt.Errorf("reading the private key: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	all, err := age.ParseIdentities(f)
	if err != nil {
		return nil, fmt.Errorf("%s is no file with private age keys, as age-keygen writes it", u.IdentityFile)
	}
	return all, nil
}
