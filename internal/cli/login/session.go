package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"golang.org/x/sys/unix"

	"github.com/polder-kaas/polder/internal/files/atomicfile"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// session is one login of this user to one plane.
type session struct {
	Server       string       `json:"server"`
	Issuer       issuerConfig `json:"issuer"`
	IDToken      string       `json:"idToken,omitempty"`
	RefreshToken string       `json:"refreshToken,omitempty"`
	Expiry       time.Time    `json:"expiry,omitzero"` // of IDToken
}

// issuerConfig is who vouches for this user, and how to ask.
type issuerConfig struct {
	URL      string   `json:"url"`
	ClientID string   `json:"clientID"`
	Scopes   []string `json:"scopes,omitempty"` // beside openid and offline_access
	CA       string   `json:"ca,omitempty"`     // PEM; empty: the system's
}

// sessions keeps logins in a folder, each in a file that only its user can read.
type sessions struct{ dir string }

// userSessions are those of this user.
func userSessions() (sessions, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return sessions{}, exit.Errorf(exit.Usage, "this user has no home directory to keep a login in: %w", err)
	}
	return sessions{filepath.Join(dir, "polder", "login")}, nil
}

// validName is a name that is a file's, too.
var validName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?$`)

func (s sessions) file(name string) (string, error) {
	if !validName.MatchString(name) {
		return "", exit.Errorf(exit.Usage,
			"%q cannot be the name of a login; take letters, digits, dots and dashes, at most 100", name)
	}
	return filepath.Join(s.dir, name+".json"), nil
}

// errNoSession means that there is no login of that name.
var errNoSession = errors.New("there is no such login")

func (s sessions) load(name string) (session, error) {
	var out session
	file, err := s.file(name)
	if err != nil {
		return out, err
	}
	b, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return out, fmt.Errorf("%w: %s", errNoSession, name)
	}
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(b, &out); err != nil {
		return out, fmt.Errorf("%s is damaged: %w; remove it, and log in again", file, err)
	}
	return out, nil
}

func (s sessions) save(name string, v session) error {
	file, err := s.file(name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	b, err := json.MarshalIndent(v, "", "  ") //nolint:gosec // this file is where the token is kept
	if err != nil {
		return err
	}
	return atomicfile.Write(file, append(b, '\n'), 0o600)
}

func (s sessions) remove(name string) error {
	file, err := s.file(name)
	if err != nil {
		return err
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// lockTimeout is how long another program may take to renew the same login.
const lockTimeout = time.Minute

// lock keeps others from renewing a login at the same time: an issuer may take each refresh token once, and end the
// login if it sees one again.
func (s sessions) lock(ctx context.Context, name string) (unlock func(), err error) {
	file, err := s.file(name)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(file+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil // which gives the lock back
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("locking %s: %w", f.Name(), err), f.Close())
		}
		t := time.NewTimer(20 * time.Millisecond)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil, errors.Join(fmt.Errorf("another program has held %s for %s", f.Name(), lockTimeout), f.Close())
		case <-t.C:
		}
	}
}
