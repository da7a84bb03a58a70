package userdata

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// files reads write_files.
func files(n *node) ([]File, error) {
	items, err := list(n)
	if err != nil {
		return nil, fmt.Errorf("line %d: write_files %w", n.Line, err)
	}
	if len(items) > maxFiles {
		return nil, fmt.Errorf("line %d: write_files has %d files, more than the %d allowed", n.Line, len(items), maxFiles)
	}
	var (
		out  []File
		seen = tree{}
		left = maxContent
	)
	for i, item := range items {
		f, err := file(item, left)
		if err == nil {
			err = seen.add(f.Path)
		}
		if err != nil {
			return nil, fmt.Errorf("write_files[%d]%s (line %d): %w", i, named(f), item.Line, err)
		}
		left -= len(f.Content)
		out = append(out, f)
	}
	return out, nil
}

func named(f File) string {
	if f.Path == "" {
		return ""
	}
	return " " + short(f.Path)
}

// file reads one entry, of whose content at most limit bytes are decoded. With an error it
// returns the path as far as it is known.
func file(n *node, limit int) (File, error) {
	f := File{Mode: 0o644} // as cloud-init has it
	pairs, err := mapping(n)
	if err != nil {
		return f, fmt.Errorf("it %w", err)
	}
	var encoding string
	var body *node
	for _, p := range pairs {
		if isNull(p.value) { // as if it were not there
			continue
		}
		switch p.key {
		case "path":
			f.Path, err = scalar(p.value)
		case "owner":
			f.Owner, err = scalar(p.value)
		case "permissions":
			f.Mode, err = mode(p.value)
		case "append":
			f.Append, err = truth(p.value)
		case "encoding":
			encoding, err = scalar(p.value)
		case "content":
			body = p.value
		default:
			err = errors.New("is not supported")
		}
		if err != nil {
			return f, fmt.Errorf("%s %w", short(p.key), err)
		}
	}
	clean, err := cleanPath(f.Path)
	if err != nil {
		return f, err
	}
	f.Path = clean
	f.Content, err = content(body, encoding, limit)
	return f, err
}

func mode(n *node) (fs.FileMode, error) {
	s, err := scalar(n)
	if err != nil {
		return 0, err
	}
	// A bare 640 is a decimal number in YAML, and cloud-init would make it mode 1200.
	if n.ShortTag() == "!!int" && !strings.HasPrefix(s, "0") {
		return 0, fmt.Errorf("%s is a decimal number; write it in octal and in quotes", short(s))
	}
	m, err := strconv.ParseUint(strings.TrimPrefix(s, "0o"), 8, 32)
	if err != nil || m > 0o777 {
		return 0, fmt.Errorf("%s is not an octal mode up to 0777", strconv.Quote(short(s)))
	}
	return fs.FileMode(m), nil
}

func truth(n *node) (bool, error) {
	s, err := scalar(n)
	if err != nil {
		return false, err
	}
	switch strings.ToLower(s) {
	case "true", "yes", "on", "1":
		return true, nil
	case "false", "no", "off", "0", "":
		return false, nil
	}
	return false, fmt.Errorf("is %s, not true or false", short(s))
}
