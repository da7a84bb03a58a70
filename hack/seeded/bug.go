package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// bug is one patch, with the tests that must find it.
type bug struct {
	name, file       string
	text             string         // what it breaks
	pkg              string         // whose tests are run
	tests            *regexp.Regexp // which of them
	says             *regexp.Regexp // what one of them must say
	touches, patched string         // the file that is changed, and the patch as a whole
}

var (
	header  = regexp.MustCompile(`(?m)^(Bug|Package|Test|Says): (.+)$`)
	changed = regexp.MustCompile(`(?m)^\+\+\+ b/(.+)$`)
	failed  = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)
)

// readBugs reads all patches of a directory.
func readBugs(dir string) ([]bug, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	var out []bug
	for _, f := range files {
		b, err := readBug(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		out = append(out, b)
	}
	return out, nil
}

func readBug(file string) (bug, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return bug{}, err
	}
	b := bug{name: strings.TrimSuffix(filepath.Base(file), ".patch"), file: file, patched: string(content)}
	fields := map[string]string{}
	for _, m := range header.FindAllStringSubmatch(b.patched, -1) {
		fields[m[1]] = m[2]
	}
	for _, f := range []string{"Bug", "Package", "Test", "Says"} {
		if fields[f] == "" {
			return b, fmt.Errorf("it has no line %q", f+": ")
		}
	}
	m := changed.FindStringSubmatch(b.patched)
	if m == nil {
		return b, fmt.Errorf("it changes no file")
	}
	b.text, b.pkg, b.touches = fields["Bug"], fields["Package"], m[1]
	if b.tests, err = regexp.Compile(fields["Test"]); err != nil {
		return b, err
	}
	b.says, err = regexp.Compile(fields["Says"])
	return b, err
}

// try puts the bug in, runs the tests, and takes it out again. It returns which tests found it, empty if none did. The
// same tests must pass without the bug.
func (b bug) try(ctx context.Context, source string) (by string, err error) {
	if out, err := command(ctx, source, "git", "apply", b.file).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s does not apply any more; make it anew: %s", b.name, out)
	}
	with, _ := b.test(ctx, source) // the output says more than the exit code
	if out, err := command(ctx, source, "git", "apply", "-R", b.file).CombinedOutput(); err != nil {
		return "", fmt.Errorf("taking %s out again: %s", b.name, out)
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if without, err := b.test(ctx, source); err != nil {
		return "", fmt.Errorf("%s: the tests fail without the bug, too:\n%s", b.name, without)
	}
	return b.judge(with), nil
}

func (b bug) test(ctx context.Context, source string) (string, error) {
	out, err := command(ctx, source, "go", "test", "-count=1", "-run", b.tests.String(), "./"+b.pkg).CombinedOutput()
	return string(out), err
}

// judge says which of the tests found the bug. A program that does not compile, or another failure, is no finding.
func (b bug) judge(output string) string {
	var by []string
	for _, m := range failed.FindAllStringSubmatch(output, -1) {
		if b.tests.MatchString(m[1]) {
			by = append(by, m[1])
		}
	}
	if !b.says.MatchString(output) {
		return ""
	}
	return strings.Join(by, ", ")
}
