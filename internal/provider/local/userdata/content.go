package userdata

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
)

// encodings are the names cloud-init knows, each with the steps that undo it. Cluster API's
// documentation has those of gzip+base64 in the wrong order; this is what machines do.
var encodings = map[string][]func([]byte, int) ([]byte, error){
	"":            nil,
	"text/plain":  nil,
	"b64":         {decode},
	"base64":      {decode},
	"gz":          {unzip},
	"gzip":        {unzip},
	"gz+b64":      {decode, unzip},
	"gz+base64":   {decode, unzip},
	"gzip+b64":    {decode, unzip},
	"gzip+base64": {decode, unzip},
}

// content returns the decoded content of a file, at most limit bytes. A file without content
// is empty, whatever its encoding.
func content(n *node, encoding string, limit int) ([]byte, error) {
	steps, known := encodings[strings.ToLower(strings.TrimSpace(encoding))]
	if !known {
		return nil, fmt.Errorf("encoding %s is not known; use base64, gzip or gzip+base64", short(encoding))
	}
	if n == nil {
		return nil, nil
	}
	text, err := scalar(n)
	if err != nil {
		return nil, fmt.Errorf("content %w", err)
	}
	if n.ShortTag() == "!!binary" { // the only way to put bytes, such as bare gzip, into YAML
		steps = append([]func([]byte, int) ([]byte, error){decode}, steps...)
	}
	b := []byte(text)
	for _, step := range steps {
		if b, err = step(b, limit); err != nil {
			return nil, err
		}
	}
	if len(b) > limit {
		return nil, fmt.Errorf("the files up to this one have more than the %d bytes of content allowed", maxContent)
	}
	return b, nil
}

// decode undoes base64. What is in the document is bounded by its size already.
func decode(b []byte, _ int) ([]byte, error) {
	b = bytes.Join(bytes.Fields(b), nil) // long content is folded over lines
	out, err := base64.StdEncoding.DecodeString(string(b))
	if err != nil {
		return nil, fmt.Errorf("content is not base64: %w", err)
	}
	return out, nil
}

// unzip undoes gzip, up to one byte more than the limit, however much would follow.
func unzip(b []byte, limit int) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("content is not gzip: %w", err)
	}
	out, err := io.ReadAll(io.LimitReader(z, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("content is not gzip: %w", err)
	}
	return out, nil
}
