package releases

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/registry"
)

// put writes a release, wholly or not at all, so that it survives a crash. It does not fill the disk.
func (d *disk) put(p *registry.Pulled) (err error) {
	if _, err := d.get(p.Digest); err == nil {
		d.touch(p.Digest)
		return nil
	}
	d.writeMu.Lock()
	defer d.writeMu.Unlock()
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return err
	}
	if err := d.ensureSpace(bytesOnDisk(p)); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(d.dir, tempPrefix) // with mode 0700
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(tmp))
		}
	}()
	if err := writeRelease(tmp, p.Manifest, p.Release.Files); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := os.RemoveAll(d.releaseDir(p.Digest)); err != nil { // another's, who was faster: it has the same content
		return err
	}
	if err := os.Rename(tmp, d.releaseDir(p.Digest)); err != nil {
		return err
	}
	d.unused.markUsed(p.Digest)
	return syncDir(d.dir)
}

func writeRelease(dir string, manifest []byte, files archive.Tree) error {
	inner := filepath.Join(dir, filesDir)
	if err := os.Mkdir(inner, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(inner)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // files are closed by fill
	for _, name := range files.Names() {
		f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err := writeAndSync(f, err, files[name]); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(filepath.Join(dir, manifestFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	return errors.Join(writeAndSync(f, err, manifest), syncDir(inner), syncDir(dir))
}

// writeAndSync writes a file that was opened, if it was.
func writeAndSync(f *os.File, err error, b []byte) error {
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncDir makes durable which entries a directory has.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
