package workload_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/polder-kaas/polder/internal/workload"
)

const mebi = 1 << 20

// cluster returns a Cluster whose API server is the handler.
func cluster(t *testing.T, serve http.HandlerFunc) *workload.Cluster {
	t.Helper()
	s := httptest.NewUnstartedServer(serve)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	secrets := fake.NewClientBuilder().WithObjects(secretWith(kubeconfig(t, s, token))).Build()
	got, err := (&workload.Clusters{Secrets: secrets}).Get(t.Context(), demo)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// answers makes each kind of request to a cluster, and expects the same error of all.
func answers(t *testing.T, c *workload.Cluster, want string) {
	t.Helper()
	pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
	_, discovered := c.APIVersions(t.Context())
	for name, err := range map[string]error{
		"discovery": discovered,
		"client":    c.Client.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "b"}, pod),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", name, err, want)
		} else if len(err.Error()) > 500 || strings.Contains(err.Error(), token) {
			t.Errorf("%s: the error has %d characters: %.500s", name, len(err.Error()), err)
		}
	}
}

// endless writes a text repeatedly until nobody reads it; it gives up far above all limits.
func endless(w io.Writer, first, text string) (written int) {
	_, _ = io.WriteString(w, first)
	for block := []byte(strings.Repeat(text, 1+32<<10/len(text))); written < 256*mebi; {
		n, err := w.Write(block)
		written += n
		if err != nil {
			break
		}
	}
	return written
}

func TestAnswersWithoutEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		status            int
		first, then, want string
		most              int // bytes that are read, and those under way
	}{
		"a string":            {200, `{"a":"`, "0", "answered with more than 32 MiB", 48 * mebi},
		"a string of escapes": {200, `{"a":"`, `\"[,`, "answered with more than 32 MiB", 48 * mebi},
		"a list":              {200, `{"items":[{}`, ",{}", "answered with more than 500000 values", 16 * mebi},
		"lists in lists":      {200, `{"items":`, "[", "answered with more than 500000 values", 16 * mebi},
		"a text":              {200, "", "0", "answered with more than 2 MiB", 16 * mebi},
		"an error":            {http.StatusForbidden, `{"message":"`, "0", "answered with more than 2 MiB", 16 * mebi},
	} {
		t.Run(name, func(t *testing.T) {
			written := make(chan int, 10)
			c := cluster(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tc.status)
				written <- endless(w, tc.first, tc.then)
			})
			answers(t, c, tc.want)
			for range 2 {
				if n := <-written; n > tc.most {
					t.Errorf("%d bytes were taken", n)
				}
			}
		})
	}
}

func TestAnswerAsLongAsMayBe(t *testing.T) {
	for name, tc := range map[string]struct {
		length int
		want   string
	}{
		"as long as may be": {32 * mebi, ""},
		"one byte more": {32*mebi + 1,
			`asking the cluster what it serves: unexpected error when reading response body. Please retry. Original error: the cluster API path "/apis" answered with more than 32 MiB`},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, func(w http.ResponseWriter, r *http.Request) {
				const first, last = `{"kind":"APIGroupDiscoveryList","items":[],"a":"`, `"}`
				if r.URL.Path == "/apis" {
					_, _ = io.WriteString(w, first+strings.Repeat("0", tc.length-len(first)-len(last))+last)
					return
				}
				_, _ = io.WriteString(w, `{"kind":"APIVersions"}`)
			})
			got := ""
			if _, err := c.APIVersions(t.Context()); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestPackedAnswersAreRefused(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	endless(z, `{"a":"`, "0")
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	c := cluster(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Accept-Encoding"); got != "" {
			t.Errorf("%s is asked for with encoding %q", r.URL.Path, got)
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	})
	answers(t, c, "answered with an encoding that was not asked for")
}

func TestRedirectsAreRefused(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("it went elsewhere, with %q", r.Header.Get("Authorization"))
	}))
	defer other.Close()
	for name, to := range map[string]string{"to another server": other.URL, "to another path": "/elsewhere"} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			t.Run(name+" by "+http.StatusText(status), func(t *testing.T) {
				c := cluster(t, func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/elsewhere" {
						t.Error("it went elsewhere")
					}
					http.Redirect(w, r, to, status)
				})
				answers(t, c, "answered with a redirect (")
			})
		}
	}
}
