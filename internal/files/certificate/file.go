package certificate

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// checkInterval is how often files are looked at.
const checkInterval = time.Second

// File is a certificate with its key in two files, which somebody else replaces while they are in use. Its fields are
// set before the first use and not changed; Get is safe for concurrent use.
type File struct {
	Certificate, Key string
	Clock            clock.PassiveClock
	// OnProblem (may be nil) is called once for each state of the files that cannot be used; the certificate before it
	// stays in use.
	OnProblem func(error)

	mu      sync.Mutex
	current *tls.Certificate
	checked time.Time
	state   string // of the files, when they were read last
}

// Get returns the certificate, read again if the files have changed. It fails only if there has been none yet.
func (f *File) Get() (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.Clock.Now()
	if f.current != nil && now.Sub(f.checked) < checkInterval && !now.Before(f.checked) {
		return f.current, nil
	}
	f.checked = now
	state := describeFile(f.Certificate) + describeFile(f.Key)
	if f.current != nil && state == f.state {
		return f.current, nil
	}
	f.state = state
	c, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
	if err != nil && f.current == nil {
		return nil, fmt.Errorf("%s and %s cannot be used: %w", f.Certificate, f.Key, err)
	}
	if err != nil {
		if f.OnProblem != nil {
			f.OnProblem(err)
		}
		return f.current, nil
	}
	f.current = &c
	return f.current, nil
}

// describeFile tells one state of a file from another.
func describeFile(path string) string {
	i, err := os.Stat(path)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d bytes of %s; ", i.Size(), i.ModTime().Format(time.RFC3339Nano))
}
