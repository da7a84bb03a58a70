package allowlist

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
)

// Mount is a folder or file of the container, and where it is on the machine. Both paths are absolute and clean.
type Mount struct{ Container, Machine string }

// SharedDirs hold the certificates of public authorities. Components read those of the computer, and write nothing
// there.
var SharedDirs = []string{
	"/etc/ssl/certs", "/etc/ca-certificates", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates",
	"/etc/pki/ca-trust", "/etc/pki/tls/certs",
}

// unwritable are folders of a machine that components never write to: what is configured and checked is there, and
// must stay as it was when it was checked.
var unwritable = []string{"/etc", "/root", "/usr", "/var/lib/kubelet"}

// configDir is where files are that can name other files or servers: where nothing is written.
const configDir = "/etc"

// IsShared says whether a path on the machine is one of the computer's own certificates.
func IsShared(p string) bool {
	return slices.ContainsFunc(SharedDirs, func(d string) bool { return isWithin(p, d) })
}

// isWithin says whether p is dir or below it; both are absolute and clean.
func isWithin(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// CheckMachinePath checks a path that is written for the machine itself, such as that of a volume: absolute, and
// without a way upwards, so that it is below the machine's root wherever that is.
func CheckMachinePath(p string) error {
	switch {
	case p == "" || !path.IsAbs(p):
		return fmt.Errorf("the path %s is not absolute", quoteShort(p))
	case slices.Contains(strings.Split(p, "/"), ".."):
		return fmt.Errorf("the path %s leads upwards, with two dots in it", quoteShort(p))
	case strings.ContainsFunc(p, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("the path %s is not printable", quoteShort(p))
	}
	return nil
}

// SortMounts puts the longest path, which hides the others, first.
func SortMounts(mounts []Mount) {
	slices.SortStableFunc(mounts, func(a, b Mount) int { return len(b.Container) - len(a.Container) })
}

// machinePath returns where a path of the container is on the machine. As in a container, a relative path begins at
// the root, and the root has nothing above it.
func (c *checker) machinePath(v string) (string, error) {
	if v == "" {
		return "", errors.New("it names no file")
	}
	if strings.ContainsFunc(v, func(r rune) bool { return !unicode.IsPrint(r) }) || strings.Contains(v, "://") {
		return "", fmt.Errorf("%s is no path", quoteShort(v))
	}
	clean := path.Clean("/" + v)
	for _, m := range c.machine.Mounts {
		if isWithin(clean, m.Container) {
			return path.Join(m.Machine, strings.TrimPrefix(clean, m.Container)), nil
		}
	}
	return clean, nil
}

// resolvePath checks that a path on the machine does not lead out of it, and returns it as the process knows it.
func (c *checker) resolvePath(p string) (string, error) {
	if c.machine.Files != nil {
		if err := c.machine.Files.Stat(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("%s is not a file of the machine: %w", quoteShort(p), err)
		}
	}
	c.paths = append(c.paths, p)
	return c.machine.Root + p, nil
}

// readFile is a file of the machine that names nothing else, such as a certificate.
func readFile(c *checker, v string) (string, error) {
	p, err := c.machinePath(v)
	if err != nil {
		return "", err
	}
	return c.resolvePath(p)
}

// optionalFile is a file, or none.
func optionalFile(c *checker, v string) (string, error) {
	if v == "" {
		return "", nil
	}
	return readFile(c, v)
}

// caFile is a file of the machine, or of the computer's own certificates of public authorities.
func caFile(c *checker, v string) (string, error) {
	p, err := c.machinePath(v)
	if err == nil && IsShared(p) {
		return p, nil
	}
	return readFile(c, v)
}

// writtenFile is a file or folder that the component makes.
func writtenFile(c *checker, v string) (string, error) {
	p, err := c.machinePath(v)
	if err != nil {
		return "", err
	}
	if p == "/" || slices.ContainsFunc(unwritable, func(d string) bool { return isWithin(p, d) || isWithin(d, p) }) {
		return "", fmt.Errorf("nothing is written to %s of a local machine; choose a folder below /var/log or /var/lib",
			quoteShort(p))
	}
	return c.resolvePath(p)
}

// auditLog is a file that is written, or the process's own output.
func auditLog(c *checker, v string) (string, error) {
	if v == "-" {
		return v, nil
	}
	return writtenFile(c, v)
}

// keyPair is CERTIFICATE,KEY and, after a colon, names.
func keyPair(c *checker, v string) (string, error) {
	files, names, found := strings.Cut(v, ":")
	cert, key, ok := strings.Cut(files, ",")
	if !ok || strings.Contains(key, ",") {
		return "", fmt.Errorf("%s is not CERTIFICATE,KEY", quoteShort(v))
	}
	cert, certErr := readFile(c, cert)
	key, keyErr := readFile(c, key)
	if err := errors.Join(certErr, keyErr); err != nil {
		return "", err
	}
	if found {
		names = ":" + names
	}
	return cert + "," + key + names, nil
}

// checkedFile is a file that can name other files or servers. It is read and checked; that it is below /etc, where
// nothing is written, keeps it as it was.
func checkedFile(check func(c *checker, file string, content []byte) error) kind {
	return func(c *checker, v string) (string, error) {
		p, err := c.machinePath(v)
		if err != nil {
			return "", err
		}
		value, err := c.resolvePath(p)
		if err != nil {
			return "", err
		}
		return value, c.checkContent(p, check)
	}
}

// checkContent reads a file of the machine and checks it.
func (c *checker) checkContent(p string, check func(c *checker, file string, content []byte) error) error {
	if !isWithin(p, configDir) {
		return fmt.Errorf("%s is not below %s, where files are that are checked", quoteShort(p), configDir)
	}
	if c.machine.Files == nil {
		return nil
	}
	b, err := c.machine.Files.ReadFile(p)
	if errors.Is(err, ErrUnknownContent) {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the file %s is not on the machine", quoteShort(p))
	}
	if err != nil {
		return fmt.Errorf("the file %s cannot be read: %w", quoteShort(p), err)
	}
	if err := check(c, p, b); err != nil {
		return fmt.Errorf("in the file %s %w", quoteShort(p), err)
	}
	return nil
}
