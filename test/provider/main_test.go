// Package provider runs the instant provider against a real plane: many clusters at once, and providers that fail.
package provider

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/polder-kaas/polder/provider/providertest"
	"github.com/polder-kaas/polder/test/instant"
	"github.com/polder-kaas/polder/test/testenv"
)

// directory is the name under which the plane knows the releases.
const directory = "instant"

// All tests have one plane, and one provider at work in it, for which tests set faults.
var (
	shared          = testenv.NewShared()
	instantProvider = instant.New()
	faulty          = providertest.NewFaulty(instantProvider)
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *checkMemory {
		shared.Env = testenv.OwnGC()
	}
	dir, err := os.MkdirTemp("", "polder-instant-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err == nil {
		err = instantProvider.WriteReleases(context.Background(), dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shared.Flags = []string{"--no-shipped-stacks", "--profiling", "--stack-directory", directory + "=" + dir, "--stack-kinds", "instant.polder.dev/*"}
	code := shared.Run(m)
	faulty.Release()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "running the provider:", err)
		code = 1
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "cleaning up:", err)
		code = 1
	}
	os.Exit(code)
}
