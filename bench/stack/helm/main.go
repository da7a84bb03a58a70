// Command helm renders a chart with Helm's own action package, again and again, and prints how long
// that takes, as a number of microseconds. It is a module of its own: that package needs database
// drivers and more that nothing of ours needs.
//
//	helm DIR ROUNDS
package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

func main() {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "helm:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("give a directory and a number of rounds")
	}
	rounds, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	var all []time.Duration
	for range rounds {
		start := time.Now()
		if err := render(args[0]); err != nil {
			return err
		}
		all = append(all, time.Since(start))
	}
	slices.SortFunc(all, cmp.Compare[time.Duration])
	fmt.Println(all[len(all)/2].Microseconds())
	return nil
}

func render(dir string) error {
	ch, err := loader.Load(dir)
	if err != nil {
		return err
	}
	in := action.NewInstall(action.NewConfiguration())
	in.DryRunStrategy, in.IncludeCRDs, in.Replace = action.DryRunClient, true, true
	in.ReleaseName, in.Namespace = "cluster-addon", "kube-system"
	if in.KubeVersion, err = common.ParseKubeVersion("v1.37.1"); err != nil {
		return err
	}
	_, err = in.Run(ch, nil)
	return err
}
