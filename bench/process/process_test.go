package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParseCPU(t *testing.T) {
	const after = " S 1 1 1 0 -1 0 0 0 0 0 10 20 300 400 20 0"
	for _, tt := range []struct {
		name, stat string
		want       CPU
		wrong      bool
	}{
		{"plain", "7 (polderd)" + after, CPU{300 * time.Millisecond, 7 * time.Second}, false},
		{"parentheses in the name", "7 (a) b (c))" + after, CPU{300 * time.Millisecond, 7 * time.Second}, false},
		{"too short", "7 (polderd) S 1", CPU{}, true},
		{"no number", strings.Replace("7 (polderd)"+after, "300", "x", 1), CPU{}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseCPU([]byte(tt.stat))
			if (err != nil) != tt.wrong || !tt.wrong && got != tt.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestReadMemory(t *testing.T) {
	got, err := ReadMemory(os.Getpid(), "status", "VmRSS", "VmHWM")
	if err != nil || got["VmRSS"] < 1<<20 || got["VmHWM"] < got["VmRSS"] {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := ReadMemory(os.Getpid(), "status", "VmNothing"); err == nil {
		t.Error("a field that is not there is no error")
	}
}

// script writes a program.
func script(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestEndedErrorHasTheEndOfTheLog(t *testing.T) {
	p, err := Start(t.TempDir(), script(t, "echo first; echo $GOGC$HOME; exit 3"))
	if err != nil {
		t.Fatal(err)
	}
	<-p.done
	err = p.EndedError()
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), filepath.Dir(p.log)) {
		t.Errorf("got %v", err)
	}
	if tail, err := p.LogTail(1); err != nil || strings.Contains(tail, "first") {
		t.Errorf("the last line is %q, %v", tail, err)
	}
}

func TestStopEndsAProcess(t *testing.T) {
	p, err := Start(t.TempDir(), script(t, "exec sleep 600"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.EndedError(); err != nil {
		t.Errorf("it has ended: %v", err)
	}
	if _, err := ReadCPU(p.PID()); err != nil {
		t.Error(err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if p.EndedError() == nil {
		t.Error("it runs")
	}
}
