package authentication

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const ownIssuer = "https://polder.internal"

// oneIssuer is a configuration as an operator writes it.
const oneIssuer = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: "https://login.example.org", audiences: [polder]}
  claimMappings:
    username: {claim: sub, prefix: "oidc:"}
    groups: {claim: groups, prefix: "oidc:"}
`

const secondIssuer = `- issuer: {url: "https://other.example.org", audiences: [polder]}
  claimMappings:
    username: {claim: sub, prefix: PREFIX}
`

func TestMerge(t *testing.T) {
	m, err := merge([]byte(oneIssuer), ownIssuer)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Issuers) != 1 || m.Issuers[0].URL != "https://login.example.org" {
		t.Errorf("issuers %+v", m.Issuers)
	}
	var got struct {
		Anonymous struct {
			Enabled    bool
			Conditions []struct{ Path string }
		}
		JWT []struct{ UserValidationRules []struct{ Expression string } }
	}
	if err := yaml.Unmarshal(m.Content, &got); err != nil {
		t.Fatal(err)
	}
	if !got.Anonymous.Enabled || len(got.Anonymous.Conditions) != len(openPaths) || got.Anonymous.Conditions[1].Path != "/readyz" {
		t.Errorf("without login one gets %+v", got.Anonymous)
	}
	if rules := got.JWT[0].UserValidationRules; len(rules) != 2 || !strings.Contains(rules[1].Expression, `!g.startsWith("polder:")`) {
		t.Errorf("rules %+v", rules)
	}
	again, err := merge(withoutAnonymous(t, m.Content), ownIssuer)
	if err != nil || string(again.Content) != string(m.Content) {
		t.Errorf("merged again it is another: %v\n%s", err, again.Content)
	}
}

func TestMergeWithoutFile(t *testing.T) {
	m, err := merge(nil, ownIssuer)
	if err != nil || len(m.Issuers) > 0 || !strings.Contains(string(m.Content), "/livez") {
		t.Errorf("%s, %v", m.Content, err)
	}
}

func TestMergeRefuses(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"nothing":           {"", "it is empty"},
		"no YAML":           {"a: [", "yaml"},
		"another kind":      {"apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n", "it must be an AuthenticationConfiguration"},
		"an unknown field":  {strings.Replace(oneIssuer, "audiences", "audience", 1), `unknown field "jwt[0].issuer.audience"`},
		"plain HTTP":        {strings.Replace(oneIssuer, "https:", "http:", 1), "jwt[0].issuer.url: Invalid value"},
		"our own issuer":    {strings.Replace(oneIssuer, "https://login.example.org", ownIssuer, 1), "must not overlap with disallowed issuers"},
		"no expression":     {strings.Replace(oneIssuer, `{claim: sub, prefix: "oidc:"}`, `{expression: "claims.sub +"}`, 1), "claimMappings.username.expression"},
		"anonymous":         {oneIssuer + "anonymous: {enabled: true}\n", "anonymous: Forbidden: what is answered without login is fixed: /livez, /readyz, /version; leave it out"},
		"the same prefix":   {oneIssuer + strings.Replace(secondIssuer, "PREFIX", `"oidc:"`, 1), `jwt[1].claimMappings.username.prefix: Invalid value: "oidc:": with jwt[0].claimMappings.username.prefix being "oidc:"`},
		"no prefix at all":  {oneIssuer + strings.Replace(secondIssuer, "PREFIX", `""`, 1), "one issuer could write the names of the other"},
		"a longer prefix":   {oneIssuer + strings.Replace(secondIssuer, "PREFIX", `"oidc:b:"`, 1), "one issuer could write the names of the other"},
		"far too much text": {oneIssuer + strings.Repeat("# more\n", maxFile/7), "it has more than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := merge([]byte(c.file), ownIssuer)
			if err == nil {
				t.Fatalf("taken:\n%s", m.Content)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
	if _, err := merge([]byte(oneIssuer+strings.Replace(secondIssuer, "PREFIX", `"b:"`, 1)), ownIssuer); err != nil {
		t.Errorf("two issuers with prefixes of their own: %v", err)
	}
}

func withoutAnonymous(t *testing.T, content []byte) []byte {
	t.Helper()
	var all map[string]any
	if err := yaml.Unmarshal(content, &all); err != nil {
		t.Fatal(err)
	}
	delete(all, "anonymous")
	b, err := yaml.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
