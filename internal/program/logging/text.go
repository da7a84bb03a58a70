package logging

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
)

// textHandler writes lines for people: time of day, level, message, then key=value pairs
// as slog.TextHandler writes them.
type textHandler struct {
	sink  *textSink
	attrs slog.Handler // renders only the attributes, into sink.buf
	level slog.Level
}

// textSink is shared by all handlers made from one: a line is put together in buf, so one at a time.
type textSink struct {
	mu  sync.Mutex
	out io.Writer
	buf bytes.Buffer
}

func newTextHandler(w io.Writer, level slog.Level) *textHandler {
	sink := &textSink{out: w}
	attrs := slog.NewTextHandler(&sink.buf, &slog.HandlerOptions{Level: Trace, ReplaceAttr: dropBuiltins})
	return &textHandler{sink: sink, attrs: attrs, level: level}
}

func dropBuiltins(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
		return slog.Attr{}
	}
	return a
}

func (h *textHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }

func (h *textHandler) Handle(ctx context.Context, r slog.Record) error {
	h.sink.mu.Lock()
	defer h.sink.mu.Unlock()
	h.sink.buf.Reset()
	fmt.Fprintf(&h.sink.buf, "%s %-5s %s ", r.Time.Format("15:04:05"), r.Level, r.Message)
	if err := h.attrs.Handle(ctx, r); err != nil {
		return err
	}
	line := bytes.TrimRight(h.sink.buf.Bytes(), " \n")
	_, err := h.sink.out.Write(append(line, '\n'))
	return err
}

func (h *textHandler) WithAttrs(as []slog.Attr) slog.Handler {
	return &textHandler{sink: h.sink, attrs: h.attrs.WithAttrs(as), level: h.level}
}

func (h *textHandler) WithGroup(name string) slog.Handler {
	return &textHandler{sink: h.sink, attrs: h.attrs.WithGroup(name), level: h.level}
}
