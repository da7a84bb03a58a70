package plane

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/polder-kaas/polder/internal/plane/backup/backupfile"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// unlockOptions are the flags of commands that open a backup.
type unlockOptions struct {
	identityFile   string
	passphraseFile string
}

func (u *unlockOptions) addFlags(c *cobra.Command) {
	c.Flags().StringVarP(&u.identityFile, "identity-file", "i", "", "`FILE` with the private age key, as age-keygen writes it")
	c.Flags().StringVar(&u.passphraseFile, "passphrase-file", "",
		"`FILE` whose first line is the passphrase (default: it is asked for)")
}

// open opens a backup and finds out with what it is to be decrypted.
func (u *unlockOptions) open(c *cobra.Command, path string) (*backupfile.Reader, backupfile.Unlock, error) {
	b, err := backupfile.Open(path)
	if err != nil {
		return nil, backupfile.Unlock{}, exit.With(exit.BadBackup, err)
	}
	unlock, err := u.unlock(c, b.Encryption)
	if err != nil {
		return nil, unlock, errors.Join(err, b.Close())
	}
	return b, unlock, nil
}

func (u *unlockOptions) unlock(c *cobra.Command, e backupfile.Encryption) (backupfile.Unlock, error) {
	out := backupfile.Unlock{IdentityFile: u.identityFile}
	var err error
	switch {
	case u.identityFile != "" && u.passphraseFile != "":
		return out, exit.Errorf(exit.Usage, "--identity-file and --passphrase-file exclude each other; choose one")
	case e == backupfile.Plaintext || u.identityFile != "":
		return out, nil
	case u.passphraseFile != "":
		out.Passphrase, err = backupfile.ReadPassphrase(u.passphraseFile)
	case e == backupfile.WithKey:
		return out, exit.Errorf(exit.Usage, "the backup is encrypted to an age key; name the file with the private one with --identity-file")
	case terminal(c) == nil:
		return out, exit.Errorf(exit.Usage, "the backup is encrypted with a passphrase; name a file that has it with --passphrase-file")
	default:
		out.Passphrase, err = askPassphrase(c, "Passphrase of the backup: ")
	}
	return out, exit.With(exit.Usage, err)
}

// completeKeys asks for a passphrase if nothing was chosen, and refuses to guess where nobody can be asked.
func completeKeys(c *cobra.Command, k *backupfile.Keys) error {
	if !k.IsEmpty() {
		return exit.With(exit.Usage, k.Check())
	}
	if terminal(c) == nil {
		return exit.Errorf(exit.Usage, "%w; name who can open it with --recipient, --recipients-file or --passphrase-file, or choose --plaintext", backupfile.ErrNoKey)
	}
	first, err := askPassphrase(c, "Passphrase for the backup: ")
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	second, err := askPassphrase(c, "The same again: ")
	if err == nil && first != second {
		err = errors.New("the two passphrases differ; nothing was written")
	}
	k.Passphrase = first
	return exit.With(exit.Usage, err)
}

// terminal is where people can be asked, or nil.
func terminal(c *cobra.Command) *os.File {
	f, ok := c.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return f
}

// askPassphrase does not show what is typed.
func askPassphrase(c *cobra.Command, question string) (string, error) {
	fmt.Fprint(c.ErrOrStderr(), question) //nolint:errcheck // the answer is what counts
	b, err := term.ReadPassword(int(terminal(c).Fd()))
	fmt.Fprintln(c.ErrOrStderr())
	if err == nil && len(b) == 0 {
		err = errors.New("the passphrase is empty")
	}
	return string(b), err
}
