package main

import (
	"encoding/xml"
	"fmt"
	"os"
	"slices"
	"strings"
)

// result is how one test went.
type result struct {
	name    string
	seconds float64
	passed  bool
	reason  string // why it failed: the first line of its message
	detail  string // all of it
}

type testSuites struct {
	XMLName  xml.Name    `xml:"testsuites"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Suites   []testSuite `xml:"testsuite"`
}

type testSuite struct {
	Name     string     `xml:"name,attr"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Time     float64    `xml:"time,attr"`
	Cases    []testCase `xml:"testcase"`
}

type testCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Time    float64       `xml:"time,attr"`
	Failure *junitMessage `xml:"failure"`
	Error   *junitMessage `xml:"error"`
	Skipped *junitMessage `xml:"skipped"`
}

type junitMessage struct {
	Message string `xml:"message,attr,omitempty"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// readJUnit reads the results of these tests from a report that also has all others, as skipped.
func readJUnit(file string, tests []string) ([]result, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all testSuites
	if err := xml.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	var results []result
	for _, s := range all.Suites {
		for _, c := range s.Cases {
			if name := strings.TrimPrefix(c.Name, "[It] "); slices.Contains(tests, name) {
				results = append(results, toResult(name, c))
			}
		}
	}
	for _, t := range tests {
		if !slices.ContainsFunc(results, func(r result) bool { return r.name == t }) {
			results = append(results, missingResults([]string{t}, "no result: the report does not have it")...)
		}
	}
	return results, nil
}

func toResult(name string, c testCase) result {
	r := result{name: name, seconds: c.Time, passed: true}
	for _, m := range []*junitMessage{c.Failure, c.Error, c.Skipped} {
		if m == nil {
			continue
		}
		r.passed, r.detail = false, strings.TrimSpace(m.Message+"\n"+m.Text)
		r.reason, _, _ = strings.Cut(r.detail, "\n")
		if m == c.Skipped {
			r.reason = "skipped: " + r.reason
		}
		break
	}
	return r
}

func missingResults(tests []string, reason string) []result {
	var out []result
	for _, t := range tests {
		out = append(out, result{name: t, reason: reason, detail: reason})
	}
	return out
}

// writeJUnit writes one report of all results, in the order of names.
func writeJUnit(file string, results []result) error {
	suite := testSuite{Name: "Kubernetes conformance"}
	for _, r := range results {
		c := testCase{Name: r.name, Class: suite.Name, Time: r.seconds}
		if !r.passed {
			c.Failure = &junitMessage{Message: r.reason, Type: "failed", Text: r.detail}
			suite.Failures++
		}
		suite.Tests++
		suite.Time += r.seconds
		suite.Cases = append(suite.Cases, c)
	}
	slices.SortFunc(suite.Cases, func(a, b testCase) int { return strings.Compare(a.Name, b.Name) })
	b, err := xml.MarshalIndent(testSuites{Tests: suite.Tests, Failures: suite.Failures, Suites: []testSuite{suite}}, "",
		"  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte(xml.Header), b...), 0o644)
}
