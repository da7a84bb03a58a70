package main

import (
	"errors"
	"flag"
	"path/filepath"
	"time"
)

// config is what can be chosen about a run.
type config struct {
	bin         string        // directory with polder and polderd, and the separate programs in bench/
	starts      int           // starts whose median counts
	clusters    int           // stub clusters to build
	settle      time.Duration // calm before anything is measured
	window      time.Duration // how long to look at memory and CPU
	timeout     time.Duration // for each thing that is waited for
	controllers string        // which of Kubernetes' controllers the separate side runs
	profiles    string        // directory for heap profiles of polderd; empty: none
}

func (c *config) addFlags() {
	flag.StringVar(&c.bin, "bin", "bin", "`directory` of the built programs")
	flag.IntVar(&c.starts, "starts", 3, "starts of each kind; the median of their times counts")
	flag.IntVar(&c.clusters, "clusters", 20, "stub clusters to build, three machines each")
	flag.DurationVar(&c.settle, "settle", 30*time.Second, "calm before memory and CPU are measured")
	flag.DurationVar(&c.window, "window", 30*time.Second, "time over which memory and CPU are measured")
	flag.DurationVar(&c.timeout, "timeout", 3*time.Minute, "longest wait for a side to be ready, and for all machines")
	flag.StringVar(&c.controllers, "controllers", sameControllers,
		"`list` for --controllers of the separate kube-controller-manager")
	flag.StringVar(&c.profiles, "profiles", "",
		"`directory` for heap profiles of polderd, which then runs with --profiling")
}

func (c *config) validate() error {
	if c.starts < 1 || c.clusters < 1 {
		return errors.New("-starts and -clusters must be at least 1")
	}
	if c.settle < 0 || c.window < time.Second || c.timeout < time.Second {
		return errors.New("-settle must not be negative, -window and -timeout at least 1s")
	}
	return nil
}

// program is the path of a built program.
func (c config) program(name string) string { return filepath.Join(c.bin, name) }
