package userdata

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

const (
	maxPath = 1024 // leaves room for the directory of the machine in the kernel's 4096
	maxName = 255  // what file systems allow
)

// cleanPath returns p in its shortest form, if it is a file that Write can make.
func cleanPath(p string) (string, error) {
	names := strings.Split(p, "/")
	last := names[len(names)-1]
	switch {
	case p == "":
		return "", errors.New("it has no path")
	case !isPrintable(p):
		return "", errors.New("the path has characters that cannot be printed")
	case !strings.HasPrefix(p, "/"):
		return "", errors.New("the path is relative; begin it with /")
	case slices.Contains(names, ".."):
		return "", errors.New("the path leads upwards, with two dots in it")
	case last == "" || last == ".":
		return "", errors.New("the path is that of a directory")
	case len(p) > maxPath || slices.ContainsFunc(names, func(n string) bool { return len(n) > maxName }):
		return "", fmt.Errorf("the path is too long: %d bytes in all and %d in one name are allowed", maxPath, maxName)
	}
	clean := path.Clean(p)
	if clean == "/"+tempName || strings.HasPrefix(clean, "/"+tempName+"/") {
		return "", fmt.Errorf("the name /%s is reserved", tempName)
	}
	return clean, nil
}

// pathTree records whether a path is a file or a directory: it cannot be both.
type pathTree map[string]bool // path: is a directory

func (t pathTree) add(file string) error {
	if t[file] {
		return errors.New("an earlier file has this path as its directory")
	}
	t[file] = false
	for dir := path.Dir(file); dir != "/" && !t[dir]; dir = path.Dir(dir) {
		if _, known := t[dir]; known {
			return fmt.Errorf("its directory %s is an earlier file", shorten(dir))
		}
		t[dir] = true
	}
	return nil
}
