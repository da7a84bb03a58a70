// Package logging makes one log out of the many that are linked into polderd. It is the only
// owner of the process-wide loggers of klog, controller-runtime, etcd and the standard library.
//
// At the default level people see what Polder itself says and what a library reports as
// wrong; at debug also what libraries do; at trace in every detail, but no content of requests.
package logging

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/term"
)

// Trace lies below slog's debug level and lets through all that libraries log up to their verbosity 7. From 8 on,
// client-go logs the bodies of requests and answers, which have private keys and tokens in them: no level shows that.
const Trace = slog.Level(-7)

// The values that the flags accept.
var (
	levels = map[string]slog.Level{
		"error": slog.LevelError, "warn": slog.LevelWarn, "info": slog.LevelInfo, "debug": slog.LevelDebug, "trace": Trace,
	}

	formats = []string{FormatAuto, FormatText, FormatJSON}
)

// The formats of the log.
const (
	FormatAuto = "auto" // text on a terminal, JSON otherwise
	FormatText = "text"
	FormatJSON = "json"
)

// Options choose what is logged and how.
type Options struct {
	Level  string
	Format string
	Out    *os.File
}

// New checks the options and makes the root logger; it changes nothing process-wide.
func New(o Options) (*slog.Logger, error) {
	level, ok := levels[o.Level]
	if !ok {
		return nil, fmt.Errorf("log level %q is unknown; choose error, warn, info, debug or trace", o.Level)
	}
	if !slices.Contains(formats, o.Format) {
		return nil, fmt.Errorf("log format %q is unknown; choose %s", o.Format, strings.Join(formats, ", "))
	}
	text := o.Format == FormatText || o.Format == FormatAuto && term.IsTerminal(int(o.Out.Fd()))
	return slog.New(newHandler(o.Out, level, text)), nil
}

// SilenceLibraries hides what libraries log from now on, unless the level is debug. It is for the stop, when
// components that end one after the other complain about each other.
func SilenceLibraries(root *slog.Logger) {
	if r, ok := root.Handler().(rootHandler); ok {
		r.librariesSilenced.Store(true)
	}
}

// rootHandler carries what all loggers made from one root share.
type rootHandler struct {
	slog.Handler
	librariesSilenced *atomic.Bool
}

func (r rootHandler) WithAttrs(as []slog.Attr) slog.Handler {
	return rootHandler{r.Handler.WithAttrs(as), r.librariesSilenced}
}

func (r rootHandler) WithGroup(n string) slog.Handler {
	return rootHandler{r.Handler.WithGroup(n), r.librariesSilenced}
}

func newHandler(w io.Writer, level slog.Level, text bool) slog.Handler {
	if text {
		return rootHandler{newTextHandler(w, level), new(atomic.Bool)}
	}
	return rootHandler{slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}), new(atomic.Bool)}
}
