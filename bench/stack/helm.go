package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/polder-kaas/polder/bench/scenario"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/render"
)

// synthetic is a stack with many charts, each with many objects.
func synthetic(base archive.Tree, charts int) archive.Tree {
	out := archive.Tree{}
	for name, b := range base {
		if !strings.HasPrefix(name, "cluster-addon/") {
			out[name] = b
		}
	}
	var stages strings.Builder
	stages.WriteString("apiVersion: clusteraddonconfig.x-k8s.io/v1alpha1\naddonStages:\n  AfterControlPlaneInitialized:\n")
	for i := range charts {
		name := fmt.Sprintf("addon-%02d", i)
		fmt.Fprintf(&stages, "    - {name: %s, action: apply}\n", name)
		for file, b := range manyObjects(name) {
			out["cluster-addon/"+name+"/"+file] = b
		}
	}
	out["clusteraddon.yaml"] = []byte(stages.String())
	return out
}

// manyObjects is a chart of 20 deployments.
func manyObjects(name string) archive.Tree {
	return archive.Tree{
		"Chart.yaml":  fmt.Appendf(nil, "apiVersion: v2\nname: %s\nversion: 0.1.0\n", name),
		"values.yaml": []byte("replicas: 2\nimage: example.org/image:v1\n"),
		"templates/all.yaml": fmt.Appendf(nil, `{{- range $i := until 20 }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: %s-{{ $i }}
  namespace: {{ $.Release.Namespace }}
  labels: {{ dict "app.kubernetes.io/name" "%s" "helm.sh/chart" $.Chart.Name | toYaml | nindent 4 }}
spec:
  replicas: {{ $.Values.replicas }}
  selector:
    matchLabels: {app: a{{ $i }}}
  template:
    metadata:
      labels: {app: a{{ $i }}}
    spec:
      containers:
        - name: main
          image: {{ $.Values.image | quote }}
          args: [{{ printf "--index=%%d" $i | quote }}]
{{- end }}
`, name, name),
	}
}

// measureHelm renders one chart with Helm's own package and with ours.
func (b *bench) measureHelm(ctx context.Context) (rows scenario.Rows, err error) {
	chart := manyObjects("addon")
	helm, err := helmTime(ctx, b.rounds, chart)
	if err != nil {
		return rows, fmt.Errorf("helm: %w", err)
	}
	ours, err := median(ctx, b.rounds, chart, oursOnce)
	if err != nil {
		return rows, fmt.Errorf("ours: %w", err)
	}
	rows.AddSentence("\none chart of 20 objects: Helm's action package %s in process, ours %s with the child and limits, ratio %.1f",
		ms(helm), ms(ours), float64(ours)/float64(helm))
	return rows, nil
}

// helmTime runs the program in the directory helm and returns what it prints.
func helmTime(ctx context.Context, rounds int, chart archive.Tree) (time.Duration, error) {
	dir, err := os.MkdirTemp("", "polder-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a directory of ours
	to := filepath.Join(dir, "chart")
	if err := archive.WriteDir(to, chart); err != nil {
		return 0, err
	}
	out, err := exec.CommandContext(ctx, "bin/bench/helm", to, strconv.Itoa(rounds)).Output()
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(out)))
	return time.Duration(n) * time.Microsecond, err
}

func oursOnce(ctx context.Context, files archive.Tree) error {
	out, err := new(render.Renderer).Render(ctx, render.Input{
		Jobs:         []render.Job{{Name: "addon", Chart: files, ReleaseName: "cluster-addon", Namespace: "kube-system"}},
		Capabilities: render.Capabilities{KubeVersion: "v1.37.1"}, Record: render.FixedRecord(),
	})
	if err != nil {
		return err
	}
	if out[0].Err != nil {
		return out[0].Err
	}
	set := render.ParseObjects(out[0].Files)
	if len(set.Objects) != 20 {
		return fmt.Errorf("there are %d objects", len(set.Objects))
	}
	return nil
}

// measureChild measures how much of that is starting the child: it renders an empty chart.
func (b *bench) measureChild(ctx context.Context) (rows scenario.Rows, err error) {
	empty := archive.Tree{"Chart.yaml": []byte("apiVersion: v2\nname: empty\nversion: 0.1.0\n")}
	start, err := median(ctx, 9, empty, func(ctx context.Context, files archive.Tree) error {
		_, err := new(render.Renderer).Render(ctx, render.Input{
			Jobs:         []render.Job{{Name: "empty", Chart: files}},
			Capabilities: render.Capabilities{KubeVersion: "v1.37.1"}, Record: render.FixedRecord(),
		})
		return err
	})
	if err != nil {
		return rows, err
	}
	rows.AddSentence("starting a child of this program and rendering an empty chart: %s",
		start.Round(100*time.Microsecond))
	return rows, nil
}
