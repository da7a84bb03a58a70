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
	"b64":         {decodeBase64},
	"base64":      {decodeBase64},
	"gz":          {decodeGzip},
	"gzip":        {decodeGzip},
	"gz+b64":      {decodeBase64, decodeGzip},
	"gz+base64":   {decodeBase64, decodeGzip},
	"gzip+b64":    {decodeBase64, decodeGzip},
	"gzip+base64": {decodeBase64, decodeGzip},
}

// decodeContent returns the decoded content of a file, at most limit bytes. A file without content
// is empty, whatever its encoding.
func decodeContent(n *node, encoding string, limit int) ([]byte, error) {
	steps, known := encodings[strings.ToLower(strings.TrimSpace(encoding))]
	if !known {
		return nil, fmt.Errorf("encoding %s is not known; use base64, gzip or gzip+base64", shorten(encoding))
	}
	if n == nil {
		return nil, nil
	}
	text, err := scalarText(n)
	if err != nil {
		return nil, fmt.Errorf("content %w", err)
	}
	if n.ShortTag() == "!!binary" { // the only way to put bytes, such as bare gzip, into YAML
		steps = append([]func([]byte, int) ([]byte, error){decodeBase64}, steps...)
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

// decodeBase64 undoes base64. What is in the document is bounded by its size already.
func decodeBase64(b []byte, _ int) ([]byte, error) {
	b = bytes.Join(bytes.Fields(b), nil) // long content is folded over lines
	out, err := base64.StdEncoding.DecodeString(string(b))
	if err != nil {
		return nil, fmt.Errorf("content is not base64: %w", err)
	}
	return out, nil
}

// decodeGzip undoes gzip, up to one byte more than the limit, however much would follow.
func decodeGzip(b []byte, limit int) ([]byte, error) {
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
