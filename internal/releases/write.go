package releases

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/registry"
)

// put writes a release to disk, wholly or not at all, so that it survives a crash. It does not fill the disk.
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
	if err := os.RemoveAll(d.releaseDir(p.Digest)); err != nil { // somebody else's, who was faster, with the same content
		return err
	}
	if err := os.Rename(tmp, d.releaseDir(p.Digest)); err != nil {
		return err
	}
	d.unused.markUsed(p.Digest)
	return syncDir(d.dir)
}

// writeRelease writes a manifest and its files into a directory, and makes them durable. The files stay below the
// directory whatever their names are, since they are opened in an os.Root.
func writeRelease(dir string, manifest []byte, files archive.Tree) error {
	inner := filepath.Join(dir, filesDir)
	if err := os.Mkdir(inner, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(inner)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // files are closed by writeAndSync
	for _, name := range files.Names() {
		f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err := writeAndSync(f, err, files[name]); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(filepath.Join(dir, manifestFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	return errors.Join(writeAndSync(f, err, manifest), syncDir(inner), syncDir(dir))
}

// writeAndSync writes a file and closes it. It takes the error of the open, too, and returns that if there is
// one.
func writeAndSync(f *os.File, err error, b []byte) error {
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncDir makes the list of a directory's entries durable; syncing the files alone does not do that.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
