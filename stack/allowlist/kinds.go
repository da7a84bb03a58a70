package allowlist

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// checker checks one flag.
type checker struct {
	machine Machine
	paths   []string
	file    string // that is being checked
}

// kind checks a value and returns what it is on the machine.
type kind func(*checker, string) (string, error)

// rule is what a flag may have.
type rule struct {
	check   kind
	boolean bool // may stand without a value
}

// maxText bounds the value of a flag.
const maxText = 16 << 10

// plainText is any text that is no path, URL or file to the component.
func plainText(_ *checker, v string) (string, error) {
	if len(v) > maxText || strings.ContainsFunc(v, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", errors.New("its value is too long, or not printable")
	}
	return v, nil
}

var wordPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// word is a name that is no path either, wherever it is put.
func word(_ *checker, v string) (string, error) {
	if len(v) > 253 || !wordPattern.MatchString(v) {
		return "", fmt.Errorf("%s is not a plain word", quoteShort(v))
	}
	return v, nil
}

func boolean(_ *checker, v string) (string, error) {
	if _, err := strconv.ParseBool(v); err != nil {
		return "", fmt.Errorf("%s is neither true nor false", quoteShort(v))
	}
	return v, nil
}

// must is a switch with only one position, for the other would open what is closed.
func must(want bool, why string) kind {
	return func(c *checker, v string) (string, error) {
		v, err := boolean(c, v)
		if err != nil {
			return "", err
		}
		if is, _ := strconv.ParseBool(v); is != want {
			return "", fmt.Errorf("on a local machine it can only be %t: %s", want, why)
		}
		return v, nil
	}
}

var numberPattern = regexp.MustCompile(`^[+-]?[0-9]{1,20}(\.[0-9]{1,20})?$`)

func number(_ *checker, v string) (string, error) {
	if !numberPattern.MatchString(v) {
		return "", fmt.Errorf("%s is no number", quoteShort(v))
	}
	return v, nil
}

func duration(_ *checker, v string) (string, error) {
	if _, err := time.ParseDuration(v); err != nil {
		return "", fmt.Errorf("%s is no duration", quoteShort(v))
	}
	return v, nil
}

func port(_ *checker, v string) (string, error) {
	if _, err := strconv.ParseUint(v, 10, 16); err != nil {
		return "", fmt.Errorf("%s is no port", quoteShort(v))
	}
	return v, nil
}

// oneOf is one of a few words.
func oneOf(words ...string) kind {
	return func(_ *checker, v string) (string, error) {
		if !slices.Contains(words, v) {
			return "", fmt.Errorf("%s is not possible on a local machine; use %s", quoteShort(v),
				strings.Join(slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "" }), " or "))
		}
		return v, nil
	}
}

// noneOf is a list without some words.
func noneOf(why string, words ...string) kind {
	return func(c *checker, v string) (string, error) {
		for _, item := range strings.Split(v, ",") {
			if slices.Contains(words, strings.TrimSpace(item)) {
				return "", fmt.Errorf("%s %s", item, why)
			}
		}
		return plainText(c, v)
	}
}

// selfNames are what means "this machine".
var selfNames = []string{"127.0.0.1", "0.0.0.0", "localhost", "::1", "::"}

// resolveHost returns the address for a host of a value: names of the machine itself become its address.
func (c *checker) resolveHost(host string) (netip.Addr, error) {
	if slices.Contains(selfNames, host) {
		return c.machine.Address, nil
	}
	a, err := netip.ParseAddr(host)
	if err != nil || !c.machine.Cluster.Contains(a) {
		return netip.Addr{}, fmt.Errorf("%s is no address of this cluster", quoteShort(host))
	}
	return a, nil
}

// listenAddress is where the component listens: the machine's own address.
func listenAddress(c *checker, v string) (string, error) {
	a, err := c.resolveHost(strings.Trim(v, "[]"))
	if err != nil {
		return "", err
	}
	if a != c.machine.Address {
		return "", fmt.Errorf("%s is not the machine's own address", quoteShort(v))
	}
	return a.String(), nil
}

// webURL is a server outside that the component reads from with TLS, such as the issuer of tokens.
func webURL(_ *checker, v string) (string, error) {
	u, err := url.Parse(v)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "", fmt.Errorf("%s is no https URL", quoteShort(v))
	}
	return v, nil
}

// urlRule is what a URL of the cluster may be.
type urlRule struct {
	schemes string // separated by spaces
	port    string // empty: any
	own     bool   // of this machine, not of another one of the cluster
}

// resolveURL returns a URL with the address that its host has.
func (c *checker) resolveURL(v string, r urlRule) (string, error) {
	wrong := fmt.Errorf("%s is not %s://ADDRESS:%s with an address of this cluster", quoteShort(v),
		strings.Fields(r.schemes)[0], cmp.Or(r.port, "PORT"))
	scheme, rest, ok := strings.Cut(v, "://")
	if !ok || !slices.Contains(strings.Fields(r.schemes), scheme) {
		return "", wrong
	}
	host, p, err := net.SplitHostPort(rest)
	if err != nil || r.port != "" && p != r.port {
		return "", wrong
	}
	if _, err := port(c, p); err != nil {
		return "", wrong
	}
	a, err := c.resolveHost(host)
	if err != nil || r.own && a != c.machine.Address {
		return "", wrong
	}
	return scheme + "://" + net.JoinHostPort(a.String(), p), nil
}

// clusterURLs is a list of URLs of the cluster's machines.
func clusterURLs(r urlRule) kind {
	return func(c *checker, v string) (string, error) {
		var out []string
		for _, item := range strings.Split(v, ",") {
			u, err := c.resolveURL(item, r)
			if err != nil {
				return "", err
			}
			out = append(out, u)
		}
		return strings.Join(out, ","), nil
	}
}

// memberList is NAME=URL for each member of etcd.
func memberList(c *checker, v string) (string, error) {
	var out []string
	for _, item := range strings.Split(v, ",") {
		name, at, ok := strings.Cut(item, "=")
		if !ok {
			return "", fmt.Errorf("%s is not NAME=URL", quoteShort(item))
		}
		if name != "" { // a member that has not started has none yet
			if _, err := word(c, name); err != nil {
				return "", err
			}
		}
		u, err := c.resolveURL(at, urlRule{schemes: "https", port: peerPort})
		if err != nil {
			return "", err
		}
		out = append(out, name+"="+u)
	}
	return strings.Join(out, ","), nil
}

// Ports of etcd, for clients and for members.
const (
	clientPort = "2379"
	peerPort   = "2380"
)
