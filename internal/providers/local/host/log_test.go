package host

import (
	"os"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/polder-kaas/polder/internal/files/logfile"
	"github.com/polder-kaas/polder/internal/providers/local/processtest"
)

// A host's log is set aside while the host runs, and what it writes then is in the new one.
func TestLogIsRotatedWhileRunning(t *testing.T) {
	f := newFixture(t)
	c := clocktesting.NewFakeClock(time.Now())
	log, err := logfile.File{Path: f.dir.LogFile()}.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	f.cfg.Clock, f.cfg.Output = c, []*os.File{log}
	f.run(t)
	line := strings.Repeat("x", 1023) + "\n"
	if _, err := log.WriteString(strings.Repeat(line, logfile.DefaultMaxBytes/len(line)+1)); err != nil {
		t.Fatal(err)
	}
	processtest.Eventually(t, "the log is set aside", func() bool {
		c.Step(logCheckInterval)
		_, err := os.Stat(f.dir.LogFile() + ".1")
		return err == nil
	})
	processtest.Eventually(t, "the log is a new one", func() bool {
		if _, err := log.WriteString("later\n"); err != nil {
			t.Fatal(err)
		}
		b, _ := os.ReadFile(f.dir.LogFile())
		return strings.HasSuffix(string(b), "later\n") && len(b) < logfile.DefaultMaxBytes
	})
}
