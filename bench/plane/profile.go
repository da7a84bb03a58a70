package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// profile writes the heap and the goroutines of an API server that serves profiles.
func (a access) profile(ctx context.Context, dir, name string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, kind := range []string{"heap", "goroutine"} {
		b, err := a.get(ctx, "/debug/pprof/"+kind)
		if err != nil {
			return fmt.Errorf("reading the %s profile: %w", kind, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+"."+kind+".pprof"), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}
