package render

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/stack/archive"
)

func TestMain(m *testing.M) {
	if code, child := Main(); child {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// chartOf gives a chart with files, by their names.
func chartOf(files map[string]string) archive.Tree {
	t := archive.Tree{chartFile: []byte("apiVersion: v2\nname: test\nversion: 1.0.0\n")}
	for name, text := range files {
		t[name] = []byte(text)
	}
	return t
}

func inputOf(jobs ...Job) Input {
	return Input{Jobs: jobs, Capabilities: Capabilities{KubeVersion: "v1.36.3"}, Record: FixedRecord()}
}

func job(files map[string]string) Job {
	return Job{Name: "test", Chart: chartOf(files), ReleaseName: "cluster-addon", Namespace: "kube-system"}
}

// renderText renders one template and gives its text.
func renderText(t *testing.T, template string) (string, *Error) {
	t.Helper()
	o := renderOutput(t, inputOf(job(map[string]string{"templates/x.yaml": template})))
	if o.Err != nil {
		return "", o.Err
	}
	if len(o.Files) != 1 {
		return "", nil
	}
	return o.Files[0].Text, nil
}

func renderOutput(t *testing.T, in Input) Output {
	t.Helper()
	out, err := new(Renderer).Render(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

func TestRender(t *testing.T) {
	dependencyOf := func(version string, files map[string]string) string {
		var b bytes.Buffer
		sub := archive.Tree{"sub/Chart.yaml": []byte("apiVersion: v2\nname: sub\nversion: " + version + "\n")}
		for name, text := range files {
			sub["sub/"+name] = []byte(text)
		}
		if err := archive.Write(&b, sub); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	dependency := func(files map[string]string) string { return dependencyOf("2.0.0", files) }
	withSub := "apiVersion: v2\nname: test\nversion: 1.0.0\ndependencies: [{name: sub, version: 2.0.0, repository: 'https://charts.example.org'}]\n"
	for name, tc := range map[string]struct {
		files  map[string]string
		values map[string]any
		tmpl   *ValuesTemplate
		want   string // all files, or the error
	}{
		"values of the chart": {
			files: map[string]string{"values.yaml": "a: 1\n", "templates/x.yaml": "a: {{ .Values.a }}"},
			want:  "templates/x.yaml a: 1",
		},
		"a template of values wins over the chart's own": {
			files: map[string]string{"values.yaml": "a: 1\nb: 2\n", "templates/x.yaml": "{{ .Values.a }} {{ .Values.b }}"},
			tmpl: &ValuesTemplate{
				File: "overwrite.yaml", Text: []byte("values: |\n  a: {{ .Cluster.metadata.name }}\n"),
				Data: map[string]any{"Cluster": map[string]any{"metadata": map[string]any{"name": "demo"}}},
			},
			want: "templates/x.yaml demo 2",
		},
		"a template of values without the key values": {
			files: map[string]string{"templates/x.yaml": "{{ .Values.a }}"},
			tmpl:  &ValuesTemplate{File: "overwrite.yaml", Text: []byte(`a: {{ "x" | upper }}`)},
			want:  "templates/x.yaml X",
		},
		"given values win over all": {
			files:  map[string]string{"values.yaml": "a: 1\n", "templates/x.yaml": "{{ .Values.a }}"},
			tmpl:   &ValuesTemplate{File: "overwrite.yaml", Text: []byte("a: 2")},
			values: map[string]any{"a": 3},
			want:   "templates/x.yaml 3",
		},
		"release, capabilities and files": {
			files: map[string]string{
				"note.txt":         "n",
				"templates/x.yaml": `{{ .Release.Name }} {{ .Release.Namespace }} {{ .Capabilities.KubeVersion.Version }} {{ .Files.Get "note.txt" }} {{ .Files.Get "../../etc/passwd" }}{{ .Template.Name }}`,
			},
			want: "templates/x.yaml cluster-addon kube-system v1.36.3 n test/templates/x.yaml",
		},
		"definitions come first, notes not at all": {
			files: map[string]string{"crds/a.yaml": "crd", "templates/NOTES.txt": "read me", "templates/a.yaml": "a", "templates/_x.tpl": "{{ define \"x\" }}{{ end }}"},
			want:  "crds/a.yaml crd\ntemplates/a.yaml a",
		},
		"a dependency that is an archive": {
			files: map[string]string{
				"Chart.yaml": withSub, "charts/sub-2.0.0.tgz": dependency(map[string]string{"templates/s.yaml": "{{ .Values.x }}"}), "values.yaml": "sub: {x: 5}\n",
			},
			want: "charts/sub/templates/s.yaml 5",
		},
		"two versions of one dependency": {
			files: map[string]string{
				"Chart.yaml":           "apiVersion: v2\nname: test\nversion: 1.0.0\ndependencies: [{name: sub, version: 1.x, alias: one}, {name: sub, version: 2.x, alias: two}]\n",
				"charts/sub-1.0.0.tgz": dependencyOf("1.0.0", map[string]string{"templates/s.yaml": "first {{ .Values.x }}"}),
				"charts/sub-2.0.0.tgz": dependencyOf("2.0.0", map[string]string{"templates/s.yaml": "second {{ .Values.x }}"}),
				"values.yaml":          "one: {x: 5}\ntwo: {x: 6}\n",
			},
			want: "charts/one/templates/s.yaml first 5\ncharts/two/templates/s.yaml second 6",
		},
		"an archive that is no dependency": {
			files: map[string]string{"files/charts/data.tgz": "data", "templates/x.yaml": `{{ .Files.Get "files/charts/data.tgz" }}`},
			want:  "templates/x.yaml data",
		},
		"notes that refuse values": {
			files: map[string]string{"templates/NOTES.txt": `{{ fail "say a" }}`, "templates/x.yaml": "x"},
			want:  "templates/NOTES.txt:1: say a",
		},
		"integers are integers": {
			files: map[string]string{"templates/x.yaml": "{{ .Values.r }}"},
			tmpl: &ValuesTemplate{
				File: "overwrite.yaml", Text: []byte(`r: {{ if gt .Cluster.replicas 1 }}{{ .Cluster.large }}{{ printf "-%d" .Cluster.replicas }}{{ end }}`),
				Data: map[string]any{"Cluster": map[string]any{"replicas": 3, "large": 1500000}},
			},
			want: "templates/x.yaml 1500000-3",
		},
		"values have the types of Helm's": {
			files: map[string]string{
				"values.yaml": "a: 1\nb: 1\nc: true\n", "templates/x.yaml": "{{ eq .Values.a .Values.b }} {{ if .Values.c }}on{{ else }}off{{ end }}",
			},
			tmpl: &ValuesTemplate{File: "overwrite.yaml", Text: []byte("a: 1\nc: no\n")},
			want: "templates/x.yaml true off",
		},
		"keys and values in order": {
			files: map[string]string{"values.yaml": "m: {e: 5, d: 4, c: 3, b: 2, a: 1}\n", "templates/x.yaml": "{{ keys .Values.m }} {{ values .Values.m }}"},
			want:  "templates/x.yaml [a b c d e] [1 2 3 4 5]",
		},
		"a dependency that is a bomb": {
			files: map[string]string{"Chart.yaml": withSub, "charts/sub-2.0.0.tgz": dependency(map[string]string{"big": strings.Repeat("\x00", 4<<20)})},
			want:  "charts/sub-2.0.0.tgz: unpacked, the archive is more than 200 times as large; that is no real content",
		},
		"a dependency that is there twice": {
			files: map[string]string{"Chart.yaml": withSub, "charts/sub-2.0.0.tgz": dependency(nil), "charts/sub-2.0.0/Chart.yaml": "name: sub"},
			want:  "charts/sub-2.0.0/Chart.yaml: the dependency is there twice, as an archive and as a directory",
		},
		"a dependency that is missing": {
			files: map[string]string{"Chart.yaml": withSub},
			want:  `Chart.yaml: the chart needs the chart sub 2.0.0 of "https://charts.example.org", which is not in its charts directory; polder stack lock and build put it there`,
		},
		"a chart for another Kubernetes": {
			files: map[string]string{"Chart.yaml": "apiVersion: v2\nname: test\nversion: 1.0.0\nkubeVersion: '>= 1.40'\n"},
			want:  "Chart.yaml: the chart is for Kubernetes >= 1.40, and this is v1.36.3",
		},
		"an error has its place": {
			files: map[string]string{"templates/x.yaml": "a\nb: {{ fail \"no luck\" }}\n"},
			want:  "templates/x.yaml:2: no luck",
		},
		"a template that does not parse": {
			files: map[string]string{"templates/x.yaml": "a\n\nb: {{ nope }}\n"},
			want:  `templates/x.yaml:3: function "nope" not defined`,
		},
		"a required value that is missing": {
			files: map[string]string{"templates/x.yaml": `{{ required "say a" .Values.a }}`},
			want:  "templates/x.yaml:1: say a",
		},
		"values against the schema": {
			files:  map[string]string{"values.schema.json": `{"type":"object","properties":{"a":{"type":"integer"}}}`, "templates/x.yaml": "x"},
			values: map[string]any{"a": "text"},
			want:   "values.schema.json: the values do not fit: a: got string, want integer",
		},
		"a schema that refers to a file": {
			files: map[string]string{"values.schema.json": `{"$ref":"file:///etc/hostname"}`, "templates/x.yaml": "x"},
			want:  `values.schema.json: failing loading "file:///etc/hostname": the schema refers to "file:///etc/hostname"; only what is in the schema itself is read`,
		},
		"a schema that refers to itself": {
			files: map[string]string{"values.schema.json": `{"$ref":"#"}`, "templates/x.yaml": "x"},
			want:  `values.schema.json: the values do not fit: both /$ref and resolve to "schema:///values.schema.json#" causing reference cycle`,
		},
		"a template of values that is wrong": {
			files: map[string]string{"templates/x.yaml": "x"},
			tmpl:  &ValuesTemplate{File: "overwrite.yaml", Text: []byte("a:\n  b: {{ .Cluster.x.y.z }}\n"), Data: map[string]any{"Cluster": "text"}},
			want:  `overwrite.yaml:2: executing "overwrite.yaml" at <.Cluster.x.y.z>: can't evaluate field x in type interface {}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := job(tc.files)
			j.Template, j.Values = tc.tmpl, tc.values
			o := renderOutput(t, inputOf(j))
			var lines []string
			for _, f := range o.Files {
				lines = append(lines, f.Path+" "+f.Text)
			}
			got := strings.Join(lines, "\n")
			if o.Err != nil {
				got = o.Err.Error()
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// The child must not learn anything about the computer, whatever a template tries.
func TestHermetic(t *testing.T) {
	t.Setenv("POLDER_CANARY", "canary-value")
	for name, tc := range map[string]struct{ template, want, err string }{
		"env":        {template: `{{ env "POLDER_CANARY" }}`, err: `function "env" not defined`},
		"expandenv":  {template: `{{ expandenv "$POLDER_CANARY" }}`, err: `function "expandenv" not defined`},
		"env by tpl": {template: `{{ tpl "{{ env \"POLDER_CANARY\" }}" . }}`, err: `function "env" not defined`},
		"host name":  {template: `[{{ getHostByName "localhost" }}]`, want: "[]"},
		"lookup":     {template: `{{ lookup "v1" "Secret" "" "" }}`, want: "map[]"},
		"clock": {template: `{{ now | unixEpoch }} {{ now | date "2006-01-02" }} {{ ago now }} {{ htmlDate now }} {{ date "2006" "x" }}`,
			want: "1704067200 2024-01-01 0s 2024-01-01 2024"},
		"time zone":          {template: `{{ dateInZone "15" now "Europe/Berlin" }}`, err: `the time zone "Europe/Berlin" is not known here`},
		"files outside":      {template: `[{{ .Files.Get "/etc/hostname" }}{{ .Files.Get "../x" }}]`, want: "[]"},
		"duration from then": {template: `{{ durationRound (now | dateModify "-50h") }}`, want: "2d"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := renderText(t, tc.template)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got %q, %v, want error %q", got, err, tc.err)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
	o := renderOutput(t, inputOf(Job{
		Name: "x", Chart: chartOf(map[string]string{"templates/x.yaml": "x"}),
		Template: &ValuesTemplate{File: "overwrite.yaml", Text: []byte(`a: {{ env "POLDER_CANARY" }}`)},
	}))
	if o.Err == nil || !strings.Contains(o.Err.Reason, "not defined") {
		t.Errorf("values: got %v", o.Err)
	}
}

// Templates that would never end, or fill the memory, are stopped from outside; charts before them
// have their output, and the others are said not to have been tried.
func TestStopped(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"endless range": {files: map[string]string{"templates/x.yaml": `{{ range $i := until 1000000 }}{{ range $j := until 1000000 }}{{ end }}{{ end }}`},
			want: "stopped"},
		"huge number":    {files: map[string]string{"templates/x.yaml": `{{ range 1000000000000 }}{{ end }}`}, want: "rendering took more than"},
		"huge widths":    {files: map[string]string{"templates/x.yaml": `{{ range 1000000 }}{{ printf "%999999d" 1 }}{{ end }}`}, want: "memory"},
		"huge repeat":    {files: map[string]string{"templates/x.yaml": `{{ repeat 2000000000 "x" }}`}, want: "memory"},
		"growing output": {files: map[string]string{"templates/x.yaml": `{{ range 100000000 }}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx{{ end }}`}, want: "memory"},
		"endless recursion": {files: map[string]string{"templates/x.yaml": `{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`},
			want: "exceeded maximum template depth"},
		"recursion by tpl":   {files: map[string]string{"values.yaml": "t: '{{ tpl .Values.t . }}'", "templates/x.yaml": `{{ tpl .Values.t . }}`}, want: ""},
		"too large a result": {files: map[string]string{"templates/x.yaml": `{{ repeat 20000000 "x" }}`}, want: "it renders to 19 MiB; at most 10 are taken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := Limits{CPU: 2 * time.Second}
			if tc.want == "memory" {
				limits.CPU = time.Minute // on a busy computer, filling the memory may cost more than 2 s
			}
			r := &Renderer{Limits: limits}
			good := Job{Name: "good", Chart: chartOf(map[string]string{"templates/x.yaml": "x"})}
			bad := Job{Name: "bad", Chart: chartOf(tc.files)}
			out, err := r.Render(t.Context(), inputOf(good, bad, good))
			if err != nil {
				t.Fatal(err)
			}
			if out[0].Err != nil || len(out[0].Files) != 1 {
				t.Errorf("the chart before: %+v", out[0])
			}
			if out[1].Err == nil || !strings.Contains(out[1].Err.Reason, tc.want) {
				t.Errorf("got %v, want %q", out[1].Err, tc.want)
			}
			t.Log(out[1].Err, "/", out[2].Err)
		})
	}
}

const certificates = `
{{- $ca := genCA "ca" 365 -}}
{{- $cert := genSignedCert "server" (list "127.0.0.1") (list "server.example.org") 30 $ca -}}
{{ $ca.Cert }}{{ $cert.Cert }}{{ $cert.Key }}`

func TestRecord(t *testing.T) {
	template := `{{ randAlphaNum 12 }} {{ randAlphaNum 12 }} {{ uuidv4 }} {{ randInt 5 10 }} {{ shuffle "abcdef" }} {{ randBytes 8 }} {{ htpasswd "u" "p" }} {{ genPrivateKey "ecdsa" }} {{ genPrivateKey "ed25519" }} {{ encryptAES "k" "text" }}`
	render := func(r Record, files map[string]string) map[string]string {
		in := inputOf(job(files))
		in.Record = r
		o := renderOutput(t, in)
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		out := map[string]string{}
		for _, f := range o.Files {
			out[f.Path] = f.Text
		}
		return out
	}
	files := map[string]string{"templates/x.yaml": template}
	first := render(FixedRecord(), files)
	if d := cmp.Diff(first, render(FixedRecord(), files)); d != "" {
		t.Error("rendered twice, it differs:", d)
	}
	fields := strings.Fields(first["templates/x.yaml"])
	if fields[0] == fields[1] {
		t.Error("two calls give the same password")
	}
	files["templates/a.yaml"] = `{{ randAlphaNum 12 }}` // before and after the other
	files["templates/z.yaml"] = `{{ randAlphaNum 12 }}`
	more := render(FixedRecord(), files)
	if more["templates/x.yaml"] != first["templates/x.yaml"] {
		t.Error("a new template changes what others get")
	}
	if more["templates/a.yaml"] == fields[0] || more["templates/a.yaml"] == more["templates/z.yaml"] {
		t.Error("two templates get the same password")
	}
	other, err := NewRecord(bytes.NewReader(bytes.Repeat([]byte{7}, seedSize)), time.Unix(1700000000, 0))
	if err != nil {
		t.Fatal(err)
	}
	if render(other, files)["templates/x.yaml"] == first["templates/x.yaml"] {
		t.Error("another record gives the same")
	}
}

// Aliases of one chart have secrets of their own, and a file that is included gives what it would give
// alone: whoever includes it, and however many do.
func TestRecordOfAliasesAndIncludes(t *testing.T) {
	var b bytes.Buffer
	if err := archive.Write(&b, archive.Tree{"sub/Chart.yaml": []byte("apiVersion: v2\nname: sub\nversion: 1.0.0\n"),
		"sub/templates/s.yaml": []byte("{{ randAlphaNum 12 }}")}); err != nil {
		t.Fatal(err)
	}
	render := func(aliases string, more map[string]string) map[string]string {
		files := map[string]string{
			"Chart.yaml": "apiVersion: v2\nname: test\nversion: 1.0.0\ndependencies: [" + aliases + "]\n", "charts/sub-1.0.0.tgz": b.String(),
			"templates/secret.yaml": "{{ randAlphaNum 12 }}",
		}
		for name, text := range more {
			files[name] = text
		}
		o := renderOutput(t, inputOf(job(files)))
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		out := map[string]string{}
		for _, f := range o.Files {
			out[f.Path] = f.Text
		}
		return out
	}
	const one, two = "{name: sub, version: 1.0.0, alias: one}", "{name: sub, version: 1.0.0, alias: two}"
	both, alone := render(one+", "+two, nil), render(one, nil)
	if both["charts/one/templates/s.yaml"] != alone["charts/one/templates/s.yaml"] || both["charts/one/templates/s.yaml"] == both["charts/two/templates/s.yaml"] {
		t.Error(both, alone)
	}
	sum := map[string]string{"templates/stateful.yaml": `{{ include (print $.Template.BasePath "/secret.yaml") . }}`}
	if with := render(one, sum); with["templates/secret.yaml"] != alone["templates/secret.yaml"] {
		t.Error("including a template changes its secret:", with, alone)
	}
}

// Certificates can be renewed without anything else changing, and it is known when they end.
func TestRenewal(t *testing.T) {
	template := `{{ $ca := genCA "ca" 365 }}{{ $ca.Key }}{{ randAlphaNum 12 }}|{{ $ca.Cert }}`
	render := func(renewed time.Time) (string, string, time.Time) {
		in := inputOf(job(map[string]string{"templates/x.yaml": template}))
		in.Record.Renewed = renewed
		o := renderOutput(t, in)
		if o.Err != nil || o.Expires == nil {
			t.Fatal(o.Err, o.Expires)
		}
		secrets, cert, _ := strings.Cut(o.Files[0].Text, "|")
		return secrets, cert, *o.Expires
	}
	year := 365 * 24 * time.Hour
	secrets, cert, expires := render(time.Time{})
	again, renewed, later := render(FixedRecord().Time.Add(year / 2))
	if secrets != again || cert == renewed || !expires.Equal(FixedRecord().Time.Add(year)) || !later.Equal(expires.Add(year/2)) {
		t.Error(secrets == again, cert == renewed, expires, later)
	}
}

// A caller that gives up is told so; the chart is not to blame.
func TestCallerGivesUp(t *testing.T) {
	endless := job(map[string]string{"templates/x.yaml": `{{ range 1000000000000 }}{{ end }}`})
	for name, want := range map[string]error{"deadline": context.DeadlineExceeded, "cancelled": context.Canceled} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if name == "cancelled" {
			cancelled, stop := context.WithCancel(t.Context())
			time.AfterFunc(300*time.Millisecond, stop)
			ctx = cancelled
		}
		out, err := new(Renderer).Render(ctx, inputOf(endless))
		cancel()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, %+v", name, err, out)
		}
	}
}

func TestCertificates(t *testing.T) {
	text, rerr := renderText(t, certificates)
	if rerr != nil {
		t.Fatal(rerr)
	}
	again, _ := renderText(t, certificates)
	if text != again {
		t.Error("rendered twice, the certificates differ")
	}
	var blocks []*pem.Block
	for rest := []byte(text); ; {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			break
		}
		blocks = append(blocks, b)
	}
	if len(blocks) != 3 {
		t.Fatalf("there are %d blocks", len(blocks))
	}
	if _, err := tls.X509KeyPair(pem.EncodeToMemory(blocks[1]), pem.EncodeToMemory(blocks[2])); err != nil {
		t.Error(err)
	}
	ca, _ := x509.ParseCertificate(blocks[0].Bytes)
	cert, err := x509.ParseCertificate(blocks[1].Bytes)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	for _, host := range []string{"server.example.org", "127.0.0.1"} {
		if _, err := cert.Verify(x509.VerifyOptions{Roots: pool, DNSName: host, CurrentTime: FixedRecord().Time.Add(time.Hour)}); err != nil {
			t.Error(host, err)
		}
	}
}

// All charts together have a limit too, so that the parent need not hold more.
func TestTotalOutput(t *testing.T) {
	var jobs []Job
	for i := range 6 {
		jobs = append(jobs, Job{Name: fmt.Sprint(i), Chart: chartOf(map[string]string{"templates/x.yaml": `{{ repeat 900000 "x" }}`})})
	}
	out, err := (&Renderer{Limits: Limits{Output: 1 << 20}}).Render(t.Context(), inputOf(jobs...))
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range out {
		if tooMuch := i > 3; tooMuch != (o.Err != nil) || tooMuch && !strings.Contains(o.Err.Reason, "render to more than 4 MiB together") {
			t.Errorf("%d: %v", i, o.Err)
		}
	}
}

func TestManyCharts(t *testing.T) {
	var jobs []Job
	for i := range 5 {
		jobs = append(jobs, Job{Name: fmt.Sprint(i), Chart: chartOf(map[string]string{"templates/x.yaml": fmt.Sprint(i)})})
	}
	jobs[1].Chart = archive.Tree{"charts/x.tgz": []byte("no archive")}
	jobs[3].Chart = archive.Tree{}
	out, err := new(Renderer).Render(t.Context(), inputOf(jobs...))
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range out {
		if bad := i == 1 || i == 3; o.Job != fmt.Sprint(i) || bad != (o.Err != nil) || !bad && o.Files[0].Text != fmt.Sprint(i) {
			t.Errorf("%d: %+v", i, o)
		}
	}
}

func FuzzParseObjects(f *testing.F) {
	for _, s := range []string{"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", "kind: List\nitems: [{}, 1, null]\n", "a: &a [*a]", "- 1\n---\n{}\n",
		"metadata: {labels: {a: 1}, annotations: [x]}\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		set := ParseObjects([]File{{Path: "x.yaml", Text: s}})
		for _, o := range set.Objects {
			if o.Name() == "" || o.Kind() == "" || o.APIVersion() == "" {
				t.Errorf("%v was taken", o.Value)
			}
		}
	})
}

func FuzzCompileSchema(f *testing.F) {
	for _, s := range []string{`{"type":"object"}`, `{"$ref":"#/a"}`, `{"$ref":"http://x/y"}`, `{"pattern":"("}`, `{"$id":"file:///etc/passwd","$ref":"x"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(_ *testing.T, b []byte) {
		_ = checkSchema(b, map[string]any{"a": 1})
	})
}
