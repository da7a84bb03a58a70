package logging

import (
	"context"
	"log/slog"

	"go.uber.org/zap/zapcore"
)

// zapCore passes what is logged through zap to a slog handler.
type zapCore struct{ h slog.Handler }

var _ zapcore.Core = (*zapCore)(nil)

// Enabled never lets through what etcd says at its level debug: that has the content of each write.
func (c *zapCore) Enabled(l zapcore.Level) bool {
	return l > zapcore.DebugLevel && c.h.Enabled(context.Background(), levelFromZap(l)) //nolint:forbidigo // zap hands over no context
}

func (c *zapCore) With(fs []zapcore.Field) zapcore.Core {
	return &zapCore{h: c.h.WithAttrs(attrsFromZap(fs))}
}

func (c *zapCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c *zapCore) Write(e zapcore.Entry, fs []zapcore.Field) error {
	r := slog.NewRecord(e.Time, levelFromZap(e.Level), e.Message, 0)
	r.AddAttrs(attrsFromZap(fs)...)
	return c.h.Handle(context.Background(), r) //nolint:forbidigo // zap hands over no context
}

func (c *zapCore) Sync() error { return nil }

func attrsFromZap(fs []zapcore.Field) []slog.Attr {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range fs {
		f.AddTo(enc)
	}
	out := make([]slog.Attr, 0, len(enc.Fields))
	for k, v := range enc.Fields {
		out = append(out, slog.Any(k, v))
	}
	return out
}

func levelFromZap(l zapcore.Level) slog.Level {
	switch {
	case l < zapcore.InfoLevel:
		return slog.LevelDebug
	case l == zapcore.InfoLevel:
		return slog.LevelInfo
	case l == zapcore.WarnLevel:
		return slog.LevelWarn
	}
	return slog.LevelError
}
