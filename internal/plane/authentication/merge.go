package authentication

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"sigs.k8s.io/yaml"
)

// maxFile bounds what is read; a certificate authority takes a few kilobytes.
const maxFile = 1 << 20

// openPaths are all that is answered to people who have not logged in.
var openPaths = []string{"/livez", "/readyz", "/version"}

var (
	scheme = runtime.NewScheme()
	codecs = serializer.NewCodecFactory(scheme, serializer.EnableStrict)
)

func init() { install.Install(scheme) } //nolint:gochecknoinits // a scheme is a table that is filled once

// Merged is the configuration of the API server that a file of an operator stands for.
type Merged struct {
	Content []byte
	Issuers []Issuer
}

// Issuer is somebody whose tokens are believed.
type Issuer struct {
	URL          string
	DiscoveryURL string // empty: it follows from URL
	CA           []byte // PEM; empty: the system's
}

// merge adds to an operator's AuthenticationConfiguration what is ours: who need not log in, and which names are never
// believed. Without a file nobody can log in by a token of somebody else. ownIssuer is that of our own tokens.
func merge(file []byte, ownIssuer string) (Merged, error) {
	c := &apiserver.AuthenticationConfiguration{}
	if file != nil {
		var err error
		if c, err = parse(file); err != nil {
			return Merged{}, err
		}
	}
	var errs field.ErrorList
	if c.Anonymous != nil {
		errs = append(errs, field.Forbidden(field.NewPath("anonymous"), "what is answered without login is fixed: "+
			strings.Join(openPaths, ", ")+"; leave it out"))
	}
	c.Anonymous = &apiserver.AnonymousAuthConfig{Enabled: true}
	for _, p := range openPaths {
		c.Anonymous.Conditions = append(c.Anonymous.Conditions, apiserver.AnonymousAuthCondition{Path: p})
	}
	for i := range c.JWT {
		reserveNames(&c.JWT[i])
	}
	errs = append(errs, checkPrefixes(c.JWT)...)
	errs = append(errs, validation.ValidateAuthenticationConfiguration(authenticationcel.NewDefaultCompiler(), c,
		[]string{ownIssuer})...)
	if len(errs) > 0 {
		return Merged{}, joinErrors(errs)
	}
	return encode(c)
}

func parse(file []byte) (*apiserver.AuthenticationConfiguration, error) {
	switch {
	case len(file) > maxFile:
		return nil, fmt.Errorf("it has more than %d bytes", maxFile)
	case len(strings.TrimSpace(string(file))) == 0:
		return nil, errors.New("it is empty; it must be an AuthenticationConfiguration of apiserver.config.k8s.io/v1")
	}
	o, err := runtime.Decode(codecs.UniversalDecoder(), file)
	if err != nil {
		return nil, err
	}
	c, ok := o.(*apiserver.AuthenticationConfiguration)
	if !ok {
		return nil, fmt.Errorf("it is a %T; it must be an AuthenticationConfiguration of apiserver.config.k8s.io/v1", o)
	}
	return c, nil
}

// reservedPrefixes are of names that Kubernetes and the plane give rights to. Somebody who writes tokens, a customer's
// own issuer perhaps, must not be able to take one.
var reservedPrefixes = []string{"system:", "polder:"}

// reserveNames adds rules by which tokens with reserved names are refused.
func reserveNames(j *apiserver.JWTAuthenticator) {
	var user, group []string
	for _, p := range reservedPrefixes {
		user = append(user, fmt.Sprintf("!user.username.startsWith(%q)", p))
		group = append(group, fmt.Sprintf("!g.startsWith(%q)", p))
	}
	reserved := " that begin with " + strings.Join(reservedPrefixes, " or ") + " are reserved"
	for _, r := range []apiserver.UserValidationRule{
		{Expression: strings.Join(user, " && "), Message: "names of users" + reserved},
		{Expression: "user.groups.all(g, " + strings.Join(group, " && ") + ")", Message: "names of groups" + reserved},
	} {
		same := func(x apiserver.UserValidationRule) bool { return x.Expression == r.Expression }
		if !slices.ContainsFunc(j.UserValidationRules, same) {
			j.UserValidationRules = append(j.UserValidationRules, r)
		}
	}
}

// checkPrefixes wants the names that two issuers give to be different. Names that are made by an expression cannot be
// checked.
func checkPrefixes(all []apiserver.JWTAuthenticator) (errs field.ErrorList) {
	type named struct {
		at     *field.Path
		prefix string
	}
	compare := func(names []named) {
		for i, a := range names {
			for _, b := range names[:i] {
				if strings.HasPrefix(a.prefix, b.prefix) || strings.HasPrefix(b.prefix, a.prefix) {
					errs = append(errs, field.Invalid(a.at, a.prefix, fmt.Sprintf(
						"with %s being %q, one issuer could write the names of the other; give each a prefix that the other's does not begin with",
						b.at, b.prefix)))
					break
				}
			}
		}
	}
	var users, groups []named
	for i, j := range all {
		at := field.NewPath("jwt").Index(i).Child("claimMappings")
		if m := j.ClaimMappings.Username; m.Claim != "" && m.Prefix != nil {
			users = append(users, named{at.Child("username", "prefix"), *m.Prefix})
		}
		if m := j.ClaimMappings.Groups; m.Claim != "" && m.Prefix != nil {
			groups = append(groups, named{at.Child("groups", "prefix"), *m.Prefix})
		}
	}
	compare(users)
	compare(groups)
	return errs
}

func encode(c *apiserver.AuthenticationConfiguration) (Merged, error) {
	var m Merged
	for _, j := range c.JWT {
		m.Issuers = append(m.Issuers, Issuer{
			URL: j.Issuer.URL, DiscoveryURL: j.Issuer.DiscoveryURL, CA: []byte(j.Issuer.CertificateAuthority),
		})
	}
	b, err := runtime.Encode(codecs.LegacyCodec(apiserverv1.SchemeGroupVersion), c)
	if err != nil {
		return m, err
	}
	m.Content, err = yaml.JSONToYAML(b)
	return m, err
}

// joinErrors says the first few in one sentence, each with where it is.
func joinErrors(errs field.ErrorList) error {
	const most = 3
	var all []string
	for _, e := range errs {
		if text := e.Error(); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	more := ""
	if n := len(all) - most; n > 0 {
		all, more = all[:most], fmt.Sprintf("; and %d more", n)
	}
	return errors.New(cmp.Or(strings.Join(all, "; "), "it is invalid") + more)
}
