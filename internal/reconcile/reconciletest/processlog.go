package reconciletest

import (
	"fmt"
	"strings"
	"sync"

	"github.com/go-logr/logr"
)

// processLog keeps the last errors a process logs, and counts its reconciles.
type processLog struct {
	mu         sync.Mutex
	last       []string
	reconciles int
}

// reconcileMessage is what controller-runtime logs, at its highest verbosity, before each reconcile.
const reconcileMessage = "Reconciling"

// maxErrors is how many errors are kept.
const maxErrors = 5

func (l *processLog) logger() logr.Logger { return logr.New(&logSink{log: l}) }

func (l *processLog) reconcileCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reconciles
}

// String is appended to the text of an error.
func (l *processLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.last) == 0 {
		return ""
	}
	return "\nlast errors logged:\n\t" + strings.Join(l.last, "\n\t")
}

// logSink implements logr.LogSink. It is enabled at all levels, since reconciles are counted by a message of a
// high one.
type logSink struct{ log *processLog }

var _ logr.LogSink = (*logSink)(nil)

func (s *logSink) Init(logr.RuntimeInfo)          {}
func (s *logSink) Enabled(int) bool               { return true }
func (s *logSink) WithValues(...any) logr.LogSink { return s }
func (s *logSink) WithName(string) logr.LogSink   { return s }

func (s *logSink) Info(_ int, m string, _ ...any) {
	if m == reconcileMessage {
		s.log.mu.Lock()
		defer s.log.mu.Unlock()
		s.log.reconciles++
	}
}

func (s *logSink) Error(err error, m string, _ ...any) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.last = append(s.log.last, fmt.Sprintf("%s: %v", m, err))
	s.log.last = s.log.last[max(0, len(s.log.last)-maxErrors):]
}
