package scenario

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var errBroken = errors.New("broken")

// sceneOf returns the name of the scene as the one row it has measured.
func sceneOf(name string, err error) Scene {
	return Scene{name, func(context.Context) (rows Rows, _ error) {
		rows.Add(name, "1 s", "")
		return rows, err
	}}
}

func TestRunPrintsWhatWasMeasured(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	interrupted := Scene{"b", func(context.Context) (Rows, error) { interrupt(); return nil, ctx.Err() }}
	for _, tt := range []struct {
		name   string
		scenes []Scene
		err    error
		want   []string // first cells of the table
		only   string
	}{
		{"all", []Scene{sceneOf("a", nil), sceneOf("b", nil)}, nil, []string{"WHAT", "a", "b"}, ""},
		{"one", []Scene{sceneOf("first", nil), sceneOf("second", nil)}, nil, []string{"WHAT", "second"}, "eco"},
		{"nothing", nil, nil, nil, ""},
		{"goes on after a failure", []Scene{sceneOf("a", errBroken), sceneOf("b", nil)}, errBroken,
			[]string{"WHAT", "a", "b"}, ""},
		{"ends with an interrupt", []Scene{sceneOf("a", nil), interrupted, sceneOf("c", nil)}, context.Canceled,
			[]string{"WHAT", "a"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			run := func(_ context.Context, r *Runner) error { return r.Run(ctx, tt.scenes...) }
			b := Benchmark{Columns: []string{"WHAT", "MEASURED"}, Run: run}
			if err := b.run(ctx, &out, tt.only); !errors.Is(err, tt.err) {
				t.Errorf("got error %v, want %v", err, tt.err)
			}
			var got []string
			for line := range strings.Lines(out.String()) {
				got = append(got, strings.Fields(line)[0])
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRunKeepsRowsOfAFailedSetup(t *testing.T) {
	var out strings.Builder
	b := Benchmark{Columns: []string{"WHAT", "MEASURED"}, Run: func(ctx context.Context, r *Runner) error {
		return errors.Join(r.Run(ctx, sceneOf("a", nil)), errBroken)
	}}
	if err := b.run(t.Context(), &out, ""); !errors.Is(err, errBroken) || !strings.Contains(out.String(), "a ") {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

func TestValidateRefusesArguments(t *testing.T) {
	b := Benchmark{Validate: func() error { return errBroken }}
	if err := b.validate([]string{"x"}); err == nil || errors.Is(err, errBroken) {
		t.Errorf("got %v for an argument", err)
	}
	if err := b.validate(nil); !errors.Is(err, errBroken) {
		t.Errorf("got %v for wrong flags", err)
	}
	if err := (Benchmark{}).validate(nil); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestPrintKeepsToTheColumns(t *testing.T) {
	row := Row{What: "a", Measured: []string{"1 s"}, Aim: "2 s", Ratio: "0.50", More: "x"}
	two := Row{What: "b", Measured: []string{"1 s", "2 s"}, Aim: "3 s"}
	for _, tt := range []struct {
		name    string
		columns []string
		row     Row
		want    string
	}{
		{"all", []string{"WHAT", "MEASURED", "AIM", "RATIO", "MORE"}, row,
			"WHAT   MEASURED   AIM   RATIO   MORE\na      1 s        2 s   0.50    x\n"},
		{"fewer", []string{"WHAT", "MEASURED", "AIM"}, row, "WHAT   MEASURED   AIM\na      1 s        2 s\n"},
		{"two measured", []string{"WHAT", "ONE", "OTHER", "AIM"}, two,
			"WHAT   ONE   OTHER   AIM\nb      1 s   2 s     3 s\n"},
		{"sentence", []string{"WHAT", "MEASURED"}, Row{What: "\na took 1 s"}, "WHAT   MEASURED\n\na took 1 s\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			if err := (&Rows{tt.row}).print(&out, tt.columns); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAddDurationHasARatio(t *testing.T) {
	var rows Rows
	rows.AddDuration("a", time.Second, 2*time.Second, "")
	if rows[0].Ratio != "0.50" || rows[0].Aim != "2.00 s" {
		t.Errorf("got %+v", rows[0])
	}
}

func TestMedianIsTheUpperOfTwo(t *testing.T) {
	for _, tt := range []struct {
		all  []int
		want int
	}{{[]int{3}, 3}, {[]int{3, 1}, 3}, {[]int{9, 1, 5}, 5}} {
		if got := Median(tt.all); got != tt.want {
			t.Errorf("got %d of %v, want %d", got, tt.all, tt.want)
		}
	}
}

func TestJoinFewNamesFive(t *testing.T) {
	if got := JoinFew([]string{"g", "f", "e", "d", "c", "b", "a"}); got != "a, b, c, d, e and 2 more" {
		t.Errorf("got %q", got)
	}
}

func TestRepeatEndsWithTheFirstError(t *testing.T) {
	n := 0
	all, err := Repeat(3, func() error {
		if n++; n == 2 {
			return errBroken
		}
		return nil
	})
	if len(all) != 1 || n != 2 || !errors.Is(err, errBroken) {
		t.Errorf("got %v after %d, %v", all, n, err)
	}
}
