package logging

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"strings"

	"github.com/go-logr/logr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Install points every library's process-wide logger at root. Call it once, before any
// library logs. onFatal is called instead of the os.Exit hidden in klog.Fatal, with the
// message; it must not return.
func Install(root *slog.Logger, onFatal func(message string)) {
	slog.SetDefault(root)
	k := &klogText{log: slog.New(NewLibraryHandler(root, "kubernetes"))}
	klog.SetLoggerWithOptions(logr.FromSlogHandler(k.log.Handler()), klog.ContextualLogger(true),
		klog.WriteKlogBuffer(k.write))
	klog.OsExit = func(int) { onFatal(k.fatal) }
	setKlogVerbosity(root)
	ctrl.SetLogger(logr.FromSlogHandler(NewLibraryHandler(root, "cluster-api")))
}

// NewEtcdLogger returns a logger of the type that etcd needs. etcd ends the process through it where it cannot go
// on (a disk that fails to sync, say); onFatal is called with the reason and must not return.
func NewEtcdLogger(root *slog.Logger, onFatal func(message string)) *zap.Logger {
	return zap.New(&zapCore{h: NewLibraryHandler(root, "etcd")}, zap.WithFatalHook(fatalHook(onFatal)))
}

// fatalHook is called by zap instead of os.Exit. Its OnWrite does not return, as zap demands.
type fatalHook func(message string)

func (f fatalHook) OnWrite(e *zapcore.CheckedEntry, fs []zapcore.Field) {
	enc := zapcore.NewMapObjectEncoder()
	for _, field := range fs {
		field.AddTo(enc)
	}
	if cause, ok := enc.Fields["error"]; ok {
		f(fmt.Sprintf("%s: %v", e.Message, cause))
	}
	f(e.Message)
}

// setKlogVerbosity sets klog's own verbosity, since klog does not ask the handler for its level.
func setKlogVerbosity(root *slog.Logger) {
	v := "0"
	switch ctx := context.Background(); { //nolint:forbidigo // only asks the handler for its level
	case root.Enabled(ctx, Trace):
		v = "6"
	case root.Enabled(ctx, slog.LevelDebug):
		v = "2"
	}
	fs := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(fs)
	_ = fs.Set("v", v) // cannot fail: the flag exists and v is a number
}

// libraryHandler passes a library's warnings and errors, and the rest only if root logs debug.
type libraryHandler struct{ slog.Handler }

// NewLibraryHandler returns root's handler for what the named library logs.
func NewLibraryHandler(root *slog.Logger, name string) slog.Handler {
	return libraryHandler{root.Handler().WithAttrs([]slog.Attr{slog.String("from", name)})}
}

func (l libraryHandler) Enabled(ctx context.Context, level slog.Level) bool {
	if level < slog.LevelWarn && !l.Handler.Enabled(ctx, slog.LevelDebug) {
		return false
	}
	return l.Handler.Enabled(ctx, level)
}

func (l libraryHandler) Handle(ctx context.Context, r slog.Record) error {
	root, _ := l.Handler.(rootHandler)
	if (isNoise(r) || root.librariesSilenced != nil && root.librariesSilenced.Load()) &&
		!l.Handler.Enabled(ctx, slog.LevelDebug) {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}

func (l libraryHandler) WithAttrs(as []slog.Attr) slog.Handler {
	return libraryHandler{l.Handler.WithAttrs(as)}
}
func (l libraryHandler) WithGroup(n string) slog.Handler {
	return libraryHandler{l.Handler.WithGroup(n)}
}

// klogText receives what is logged through klog's old, unstructured calls as formatted text, the only way to
// learn their severity.
type klogText struct {
	log   *slog.Logger
	fatal string
}

// write is called by klog under its own lock. A line looks like
// "E1115 13:01:24.000000   12345 file.go:12] message".
func (k *klogText) write(line []byte) {
	text := strings.TrimSpace(string(line))
	level := slog.LevelInfo
	if text != "" {
		switch text[0] {
		case 'W':
			level = slog.LevelWarn
		case 'E', 'F':
			level = slog.LevelError
		}
	}
	fatal := strings.HasPrefix(text, "F")
	if _, message, ok := strings.Cut(text, "] "); ok {
		text = message
	}
	if fatal {
		k.fatal = text
	}
	k.log.Log(context.Background(), level, text) //nolint:forbidigo // klog hands over no context
}
