// Command openapi writes the published document of the REST API to a file. What was published once stays: it refuses a
// document that takes something away from the one in the file.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/polder-kaas/polder/internal/front/rest"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: openapi FILE")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

func write(file string) error {
	api, err := rest.New(rest.Config{})
	if err != nil {
		return err
	}
	w := httptest.NewRecorder()
	api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, rest.Prefix+"/openapi.json", http.NoBody))
	var next bytes.Buffer
	if err := json.Indent(&next, w.Body.Bytes(), "", "  "); err != nil {
		return err
	}
	next.WriteByte('\n')
	published, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err == nil {
		taken, err := compare(published, next.Bytes())
		if err != nil {
			return err
		}
		for _, t := range taken {
			fmt.Fprintln(os.Stderr, t)
		}
		if len(taken) > 0 {
			return fmt.Errorf("programs that use what is in %s would break: leave it as it is, or make it of a new version", file)
		}
	}
	return os.WriteFile(file, next.Bytes(), 0o644)
}
