package client

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestTrimVersion(t *testing.T) {
	for in, want := range map[string]string{"https://a/v1": "https://a", "https://a/v1/": "https://a", "https://a": "https://a", "https://a/b/v1": "https://a/b", "": ""} {
		if got := trimVersion(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestReadProblem(t *testing.T) {
	for body, want := range map[string]string{
		`{"status":409,"title":"Conflict","detail":"it is there"}`: "it is there", `{"status":409,"title":"Conflict"}`: "Conflict", "<html>": "none of this API", "{}": "none of this API",
	} {
		res := &http.Response{StatusCode: http.StatusConflict, Status: "409 Conflict", Body: io.NopCloser(strings.NewReader(body))}
		if err := ReadProblem(res, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", body, err)
		}
		if err := ReadProblem(res, []byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", body, err)
		}
	}
	if err := ReadProblem(&http.Response{StatusCode: http.StatusOK}, nil); err != nil {
		t.Error(err)
	}
}
