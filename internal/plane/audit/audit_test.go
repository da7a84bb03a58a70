package audit

import (
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// event is a line as Kubernetes writes it.
func event(name string) string {
	return `{"kind":"Event","user":{"username":"u"},"verb":"create","objectRef":{"resource":"pods","subresource":"exec","namespace":"n","name":"` + name +
		`"},"responseStatus":{"code":403,"message":"no"},"requestReceivedTimestamp":"2026-01-02T03:04:05.000006Z"}` + "\n"
}

func TestRead(t *testing.T) {
	data := t.TempDir()
	dir := Dir(data)
	if err := Read(data, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	pack := func(text string) string {
		var b strings.Builder
		z := gzip.NewWriter(&b)
		if _, err := z.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"audit.log":                                event("last") + `{"half`,
		"audit-2026-01-02T00-00-00.000.log.gz":     pack(event("second")),
		"audit-2026-01-01T00-00-00.000.log":        event("first") + "no JSON\n" + event("first again"),
		"audit-2026-01-01T00-00-00.000.log.gz":     "half packed",
		"audit-2026-01-01T00-00-00.000.log.gz.tmp": "x",
		"other": "x",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	if err := Read(data, func(e Event) error {
		names = append(names, e.Name)
		if e.User != "u" || e.Resource != "pods/exec" || e.Namespace != "n" || e.Reason != "no" || !e.IsRefused() || e.Time.Year() != 2026 {
			t.Errorf("%+v", e)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"first", "first again", "second", "last"}, names); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	stop := errors.New("enough")
	if err := Read(data, func(Event) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("told to stop: %v", err)
	}
}

// The newest come first, from the newest file back, and no more of the record is read than allowed.
func TestReadNewest(t *testing.T) {
	data := t.TempDir()
	if err := os.Mkdir(Dir(data), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"audit-2026-01-01T00-00-00.000.log": event("a1") + event("a2") + event("a3"),
		"audit.log":                         event("b1") + event("other") + event("b2") + `{"half`,
	} {
		if err := os.WriteFile(filepath.Join(Dir(data), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		limit int
		bytes int64
		want  string
		all   bool
	}{{1, 1e6, "b2", true}, {3, 1e6, "b2 b1 a3", true}, {9, 1e6, "b2 b1 a3 a2 a1", true}, {9, 10, "b2 b1", false}} {
		found, all, err := ReadNewest(t.Context(), data, Query{
			Limit: x.limit, MaxBytes: x.bytes, Contains: []string{`"a`, `"b`}, Match: func(e Event) bool { return e.Name != "other" },
		})
		var names []string
		for _, e := range found {
			names = append(names, e.Name)
		}
		if got := strings.Join(names, " "); got != x.want || all != x.all || err != nil {
			t.Errorf("%d of %d bytes: %s %t %v, want %s", x.limit, x.bytes, got, all, err, x.want)
		}
	}
}
