package manifests

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/polder-kaas/polder/internal/program/exit"
)

func TestBuiltWithoutManifests(t *testing.T) {
	_, err := load(fstest.MapFS{"README.md": {Data: []byte("only this is committed")}})
	if exit.Code(err) != exit.NoManifests || !strings.Contains(err.Error(), "make build") {
		t.Errorf("load() = %v", err)
	}
	if _, err := load(fstest.MapFS{"generated/index.json": {Data: []byte("{")}}); err == nil {
		t.Error("damaged manifests are accepted")
	}
}
