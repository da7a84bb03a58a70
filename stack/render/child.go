package render

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"runtime/debug"
	"sync/atomic"

	"helm.sh/helm/v4/pkg/chart/common"
)

// childName is the name under which a program runs to render, instead of its own.
const childName = "polder-render"

// mainCalled says whether this program can be its own child.
var mainCalled atomic.Bool

// maxStack is enough for the deepest templates; without it one could fill the memory with frames.
const maxStack = 64 << 20

// task is what the child reads from its standard input.
type task struct {
	Input  Input
	Limits Limits

	keysLeft int // private keys that the charts may still ask for
}

// Main renders if this process was started to do that. Then child is true, and the program should
// end with the code at once.
func Main() (code int, child bool) {
	mainCalled.Store(true)
	if len(os.Args) == 0 || os.Args[0] != childName {
		return 0, false
	}
	if err := runTask(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

func runTask(in io.Reader, out io.Writer) error {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // Helm's warnings are for people at a terminal
	log.SetOutput(io.Discard)
	debug.SetMaxStack(maxStack)
	debug.SetGCPercent(100) // what packages made at the start stays; see Renderer.command
	var t task
	dec := json.NewDecoder(in)
	dec.UseNumber()
	if err := dec.Decode(&t); err != nil {
		return fmt.Errorf("reading the task: %w", err)
	}
	for i, j := range t.Input.Jobs { // templates compare integers with integers
		t.Input.Jobs[i].Values, _ = convertNumbers(j.Values).(map[string]any)
		if j.Template != nil {
			j.Template.Data, _ = convertNumbers(j.Template.Data).(map[string]any)
		}
	}
	caps, err := helmCapabilities(t.Input.Capabilities)
	if err != nil {
		return err
	}
	if err := t.Input.Record.Validate(); err != nil {
		return err
	}
	// Before the first template is parsed. The task is read already, and does not count: the parent bounds its size.
	if err := t.Limits.enforce(); err != nil {
		return fmt.Errorf("setting limits: %w", err)
	}
	enc := json.NewEncoder(out)
	left := maxTotal * t.Limits.Output
	t.keysLeft = maxKeys
	for _, j := range t.Input.Jobs {
		o := renderJobSafely(j, caps, &t)
		if left -= o.size(); left < 0 {
			o = Output{
				Job: j.Name,
				Err: errorf("it and the charts before it render to more than %d MiB together", maxTotal*t.Limits.Output>>20),
			}
		}
		if err := enc.Encode(o); err != nil {
			return err
		}
	}
	return nil
}

func (o Output) size() (n int64) {
	for _, f := range o.Files {
		n += int64(len(f.Text))
	}
	return n
}

// renderJobSafely renders a chart, and turns a panic of a template function into an error: some of Helm's must
// functions panic. It also bounds the size of the output.
func renderJobSafely(j Job, caps *common.Capabilities, t *task) (out Output) {
	defer func() {
		if r := recover(); r != nil {
			out = Output{Job: j.Name, Err: errorf("a template function failed: %v", r)}
		}
	}()
	out = renderJob(j, caps, t)
	if size := out.size(); size > t.Limits.Output {
		return Output{Job: j.Name, Err: errorf("it renders to %d MiB; at most %d are taken", size>>20, t.Limits.Output>>20)}
	}
	return out
}

// convertNumbers turns numbers of JSON into integers where they are integers, as objects of Kubernetes have them.
func convertNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64() // it was a number
		return f
	case map[string]any:
		for k, e := range v {
			v[k] = convertNumbers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = convertNumbers(e)
		}
	}
	return v
}
