package logging

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// client-go logs bodies, and with them Secrets, at a high verbosity: at no level of ours.
func TestTraceShowsNoBodies(t *testing.T) {
	const canary = "cHJpdmF0ZS1rZXktb2YtYS1jbHVzdGVy"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if _, err := io.Copy(w, r.Body); err != nil {
			t.Error(err)
		}
	}))
	defer s.Close()
	for name, level := range levels {
		var b bytes.Buffer
		root := slog.New(newHandler(&b, level, true))
		ctx := klog.NewContext(t.Context(), logr.FromSlogHandler(NewLibraryHandler(root, "kubernetes")))
		json := rest.ContentConfig{ContentType: "application/json"}
		c, err := kubernetes.NewForConfig(&rest.Config{Host: s.URL, BearerToken: "token-of-a-client", ContentConfig: json})
		if err != nil {
			t.Fatal(err)
		}
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"key": canary},
		}
		if _, err := c.CoreV1().Secrets("n").Create(ctx, secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), canary) || strings.Contains(b.String(), "token-of-a-client") {
			t.Errorf("at %s the log has what a Secret has: %.300s", name, b.String())
		}
	}
}
