package admission_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/admission"
	"github.com/polder-kaas/polder/provider"
)

func raw(name, value string) change {
	return func(o *v1alpha1.WorkloadCluster) {
		o.Spec.Parameters = map[string]provider.JSON{name: {Raw: []byte(value)}}
	}
}

func noSize(o *v1alpha1.WorkloadCluster) { o.Spec.ControlPlane.MachineType = "" }

func TestParameters(t *testing.T) {
	needy := func(s clusterv1.JSONSchemaProps) *world {
		return newWorld().add(class("local-scs-1-36-v1", map[string]clusterv1.JSONSchemaProps{"network": s}))
	}
	afar := func() *world {
		w := newWorld()
		w.providers = nil // the provider runs in a process of its own
		return w
	}
	nonsense := newWorld()
	nonsense.objects["Provider/local"].(*v1alpha1.Provider).Status.Parameters = &provider.JSON{Raw: []byte(`[]`)}
	ownFlavor := newWorld()
	ownFlavor.objects["Provider/local"].(*v1alpha1.Provider).Status.Parameters = &provider.JSON{Raw: []byte(`{"flavor":{"type":"string"}}`)}
	for name, c := range map[string]struct {
		world   *world
		changes []change
		want    []string
	}{
		"one of the provider, of which it makes a variable": {ownFlavor, []change{parameter("flavor", "large")}, nil},

		"one of the class":    {newWorld(), []change{parameter("retries", 5)}, nil},
		"one of the provider": {newWorld(), []change{parameter("costCentre", "4711")}, nil},
		"the provider's schema": {newWorld(), []change{parameter("costCentre", "x")}, []string{
			`spec.parameters.costCentre: Invalid value: "x": it must be like ^[0-9]+$`,
		}},
		"one that was perhaps meant": {newWorld(), []change{parameter("retrys", 5)}, []string{
			"spec.parameters.retrys: Invalid value: stack local-scs-1-36-v1 has no such parameter; it has costCentre, flavor, mirrors, retries; did you mean retries?",
		}},
		"one within that was perhaps meant": {newWorld(), []change{parameter("mirrors", []any{map[string]any{"url_mirror": "m"}})}, []string{
			"spec.parameters.mirrors[0].url_mirror: Invalid value: there is no such field; there are hostname, urlMirror; did you mean urlMirror?",
		}},
		"one that follows from the size": {newWorld(), []change{parameter("flavor", "large")}, []string{
			"spec.parameters.flavor: Forbidden: it follows from machineType or machine; leave out one of them",
		}},
		"one that is needed, and no field sets it": {newWorld(), []change{noSize}, []string{"spec.parameters.flavor: Required value: the stack needs it"}},
		"one that is needed, and is there":         {newWorld(), []change{noSize, parameter("flavor", "large")}, nil},
		"one that is needed says what it is": {needy(clusterv1.JSONSchemaProps{Type: "string", Description: "the outer network"}), nil, []string{
			"spec.parameters.network: Required value: the outer network",
		}},
		"one that is needed has a default":         {needy(clusterv1.JSONSchemaProps{Type: "string", Default: &provider.JSON{Raw: []byte(`"x"`)}}), nil, nil},
		"nobody here knows what the provider sets": {afar(), []change{noSize}, nil},
		"nobody here needs to know what is wrong": {afar(), []change{parameter("retries", 0)}, []string{
			"spec.parameters.retries: Invalid value: 0: it must be at least 1",
		}},
		"no value at all":                 {newWorld(), []change{raw("retries", "{")}, []string{"spec.parameters.retries: Invalid value: it is no value"}},
		"the provider's schemas are none": {nonsense, []change{parameter("retries", 5)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, checkNew(t, c.world, c.changes...)); d != "" {
				t.Error(d)
			}
		})
	}
	t.Run("rules in CEL", func(t *testing.T) {
		number := clusterv1.JSONSchemaProps{Type: "integer"}
		w := newWorld().add(class("local-scs-1-36-v1", map[string]clusterv1.JSONSchemaProps{
			"window": {
				Type: "object", Properties: map[string]clusterv1.JSONSchemaProps{"start": {Type: "integer", Default: &provider.JSON{Raw: []byte("4")}}, "end": number},
				XValidations: []clusterv1.ValidationRule{{Rule: "self.start < self.end", Message: "the start must be before the end"}},
			},
			"even": {Type: "integer", XValidations: []clusterv1.ValidationRule{
				{Rule: "self % 2 == 0", MessageExpression: "'it must be even, as is ' + string(self + 1)"}, {Rule: "self >= oldSelf", Message: "it must not shrink"},
			}},
		}))
		window := func(start, end any) change {
			v := map[string]any{"end": end}
			if start != nil {
				v["start"] = start
			}
			return parameter("window", v)
		}
		order, odd := "spec.parameters.window: Invalid value: the start must be before the end", "spec.parameters.even: Invalid value: 7: it must be even, as is 8"
		for name, c := range map[string]struct {
			changes []change
			want    []string
		}{
			"kept":                  {[]change{window(2, 4), parameter("even", 4)}, nil},
			"both broken":           {[]change{window(4, 2), parameter("even", 7)}, []string{odd, order}},
			"broken by the default": {[]change{window(nil, 3), parameter("even", 4)}, []string{order}},
			"not a number": {[]change{window("x", 3), parameter("even", 4)}, []string{
				`spec.parameters.window.start: Invalid value: "x": write a whole number`,
			}},
		} {
			if d := cmp.Diff(c.want, checkNew(t, w, c.changes...)); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		}
		if d := cmp.Diff([]string{"spec.parameters.even: Invalid value: 2: it must not shrink"},
			checkChange(t, w, cluster(window(2, 4), parameter("even", 4)), cluster(window(2, 4), parameter("even", 2)))); d != "" {
			t.Error(d)
		}
	})
	t.Run("alternatives", func(t *testing.T) {
		text := clusterv1.JSONSchemaProps{Type: "string"}
		w := newWorld().add(class("local-scs-1-36-v1", map[string]clusterv1.JSONSchemaProps{"network": {
			Type: "object", Properties: map[string]clusterv1.JSONSchemaProps{"cidr": text, "name": text},
			OneOf: []clusterv1.JSONSchemaProps{{Required: []string{"cidr"}, Description: "a range"}, {Required: []string{"name"}}},
		}}))
		want := []string{"spec.parameters.network: Invalid value: {}: it must be exactly one of these, and is none: a range; with name"}
		if d := cmp.Diff(want, checkNew(t, w, parameter("network", map[string]any{}))); d != "" {
			t.Error(d)
		}
		if got := checkNew(t, w, parameter("network", map[string]any{"name": "a"})); got != nil {
			t.Error(got)
		}
	})
	t.Run("what was before", func(t *testing.T) {
		w := newWorld().add(class("local-scs-1-36-v1", map[string]clusterv1.JSONSchemaProps{"size": {
			Type: "integer", Default: &provider.JSON{Raw: []byte("3")},
			XValidations: []clusterv1.ValidationRule{{Rule: "self >= oldSelf", Message: "it must not shrink"}},
		}}))
		shrinks := func(to int) []string {
			return []string{fmt.Sprintf("spec.parameters.size: Invalid value: %d: it must not shrink", to)}
		}
		plain, five := cluster(), cluster(parameter("size", 5))
		if d := cmp.Diff(shrinks(3), checkChange(t, w, five, plain)); d != "" {
			t.Error("back to the default: ", d)
		}
		c := running("v1.36.3")
		c.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "size", Value: provider.JSON{Raw: []byte("3")}}}
		if d := cmp.Diff(shrinks(2), checkChange(t, w.add(c), plain, cluster(parameter("size", 2)))); d != "" {
			t.Error("from the default, which the Cluster has: ", d)
		}
		if got := checkChange(t, w, plain, five); len(got) > 0 {
			t.Error(got)
		}
	})
	t.Run("one that follows from another field", func(t *testing.T) {
		w := newWorld()
		w.add(class("local-scs-1-36-v1", map[string]clusterv1.JSONSchemaProps{"oidcConfig": {Type: "object"}}))
		got := checkNew(t, w, parameter("oidcConfig", map[string]any{}), func(o *v1alpha1.WorkloadCluster) { o.Spec.OIDC = &v1alpha1.OIDC{IssuerURL: "https://i"} })
		if d := cmp.Diff([]string{"spec.parameters.oidcConfig: Forbidden: it follows from another field of the spec; leave out one of them"}, got); d != "" {
			t.Error(d)
		}
	})
	t.Run("one that follows from the size of a pool", func(t *testing.T) {
		got := checkNew(t, newWorld(), noSize, parameter("flavor", "large"), func(o *v1alpha1.WorkloadCluster) { o.Spec.Workers[0].MachineType = "small" })
		if d := cmp.Diff([]string{"spec.parameters.flavor: Forbidden: it follows from machineType or machine; leave out one of them"}, got); d != "" {
			t.Error(d)
		}
	})
}

func TestValuesFitTheirSchema(t *testing.T) {
	const object = `{"type":"object","properties":{"mode":{"type":"string","enum":["fast","slow"]},"port":{"type":"integer"}},"required":["mode"]}`
	const open = `{"type":"object","additionalProperties":{"type":"integer"}}`
	for name, c := range map[string]struct{ schema, value, want string }{
		"a text":                           {`{"type":"string"}`, `"x"`, ""},
		"no text":                          {`{"type":"string"}`, `1`, ": Invalid value: 1: write a text"},
		"a whole number":                   {`{"type":"integer"}`, `3`, ""},
		"a whole number with zeros":        {`{"type":"integer"}`, `3.0`, ""},
		"no whole number":                  {`{"type":"integer"}`, `3.5`, ": Invalid value: 3.5: write a whole number"},
		"a number":                         {`{"type":"number"}`, `3.5`, ""},
		"a number in quotes":               {`{"type":"number"}`, `"3"`, `: Invalid value: "3": write a number`},
		"a word for a truth":               {`{"type":"boolean"}`, `"yes"`, `: Invalid value: "yes": write true or false`},
		"no list":                          {`{"type":"array"}`, `"x"`, `: Invalid value: "x": write a list`},
		"no fields":                        {`{"type":"object"}`, `["x"]`, `: Invalid value: ["x"]: write fields with values`},
		"nothing, where it may be":         {`{"type":"string","nullable":true}`, `null`, ""},
		"nothing, where something must be": {`{"type":"string"}`, `null`, ": Invalid value: null: write a text"},
		"a schema without a type":          {`{}`, `[1,"x"]`, ""},
		"a number or a text: a number":     {`{"x-kubernetes-int-or-string":true}`, `80`, ""},
		"a number or a text: a text":       {`{"x-kubernetes-int-or-string":true,"type":"integer"}`, `"http"`, ""},
		"a number or a text: neither":      {`{"x-kubernetes-int-or-string":true,"type":"integer"}`, `true`, ": Invalid value: true: write a whole number"},
		"one of a choice":                  {`{"enum":["a",2,null]}`, `2`, ""},
		"none of a choice":                 {`{"enum":["debug","info",3]}`, `"inffo"`, `: Invalid value: "inffo": choose from debug, info, 3; did you mean info?`},
		"none of a choice, and no word":    {`{"enum":["debug","info"]}`, `7`, ": Invalid value: 7: choose from debug, info"},
		"it fits a pattern":                {`{"type":"string","pattern":"^a+$"}`, `"aa"`, ""},
		"it does not fit a pattern": {`{"type":"string","pattern":"^a+$","example":"aaa"}`, `"b"`,
			`: Invalid value: "b": it must be like ^a+$, for example aaa`},
		"a pattern nobody can read":      {`{"type":"string","pattern":"("}`, `"b"`, ""},
		"too short":                      {`{"type":"string","minLength":2}`, `"ä"`, `: Invalid value: "ä": it must have at least 2 characters`},
		"letters are counted, not bytes": {`{"type":"string","maxLength":2}`, `"äö"`, ""},
		"too long":                       {`{"type":"string","maxLength":2}`, `"abc"`, `: Invalid value: "abc": it must have at most 2 characters`},
		"a long value is not repeated": {`{"type":"string","maxLength":2}`, `"` + strings.Repeat("a", 200) + `"`,
			": Invalid value: it must have at most 2 characters"},
		"too small":                {`{"minimum":1.5}`, `1`, ": Invalid value: 1: it must be at least 1.5"},
		"as small as may be":       {`{"minimum":1}`, `1`, ""},
		"smaller than may be":      {`{"minimum":1,"exclusiveMinimum":true}`, `1`, ": Invalid value: 1: it must be more than 1"},
		"too large":                {`{"maximum":10}`, `11`, ": Invalid value: 11: it must be at most 10"},
		"as large as may be":       {`{"maximum":10}`, `10`, ""},
		"larger than may be":       {`{"maximum":10,"exclusiveMaximum":true}`, `10`, ": Invalid value: 10: it must be less than 10"},
		"too few entries":          {`{"type":"array","minItems":1}`, `[]`, ": Invalid value: []: it must have at least 1 entries"},
		"too many entries":         {`{"type":"array","maxItems":1}`, `[1,2]`, ": Invalid value: [1,2]: it must have at most 1 entries"},
		"as few entries as may be": {`{"type":"array","minItems":1,"maxItems":1}`, `[1]`, ""},
		"what is in too many is let alone": {`{"type":"array","maxItems":1,"items":{"type":"string"}}`, `[1,2]`,
			": Invalid value: [1,2]: it must have at most 1 entries"},
		"what is too long has no pattern": {`{"type":"string","maxLength":2,"pattern":"^b+$"}`, `"aaa"`,
			`: Invalid value: "aaa": it must have at most 2 characters`},
		"an entry":        {`{"type":"array","items":{"type":"string"}}`, `["a",2]`, "[1]: Invalid value: 2: write a text"},
		"too few fields":  {`{"type":"object","minProperties":1}`, `{}`, ": Invalid value: {}: it must have at least 1 fields"},
		"too many fields": {`{"type":"object","maxProperties":0}`, `{"a":1}`, `: Invalid value: {"a":1}: it must have at most 0 fields`},
		"what is in too many fields is too": {`{"type":"object","maxProperties":0,"additionalProperties":{"type":"string"}}`, `{"a":1}`,
			`: Invalid value: {"a":1}: it must have at most 0 fields`},
		"fields that fit":         {object, `{"mode":"fast","port":80}`, ""},
		"a choice within":         {object, `{"mode":"fsat"}`, `.mode: Invalid value: "fsat": choose from fast, slow`},
		"a field of another name": {object, `{"mode":"fast","prot":80}`, ".prot: Invalid value: there is no such field; there are mode, port"},
		"a field of almost the name": {object, `{"mode":"fast","Port":80}`,
			".Port: Invalid value: there is no such field; there are mode, port; did you mean port?"},
		"a field that is needed":              {object, `{}`, ".mode: Required value: the stack needs it"},
		"a field that is needed says what":    {`{"type":"object","properties":{"a":{"description":"the a"}},"required":["a"]}`, `{}`, ".a: Required value: the a"},
		"any name, each a number":             {open, `{"x":1}`, ""},
		"any name, one no number":             {open, `{"x":1,"y":"z"}`, `[y]: Invalid value: "z": write a whole number`},
		"any name beside those that are told": {`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":true}`, `{"b":1}`, ""},
		"unknown fields are kept":             {`{"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-preserve-unknown-fields":true}`, `{"b":1}`, ""},
		"no names are told, so all may be":    {`{"type":"object"}`, `{"b":1}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.objects["Provider/local"].(*v1alpha1.Provider).Status.Parameters = &provider.JSON{Raw: fmt.Appendf(nil, `{"p":%s}`, c.schema)}
			var want []string
			if c.want != "" {
				want = []string{"spec.parameters.p" + c.want}
			}
			if d := cmp.Diff(want, checkNew(t, w, raw("p", c.value))); d != "" {
				t.Error(d)
			}
		})
	}
}

// However many errors there are, the answer stays short and takes little memory.
func TestThereIsAnEndToErrors(t *testing.T) {
	mirrors := func(n int) change {
		return raw("mirrors", "["+strings.Repeat(`{"x":1},`, n)+`{"x":1}]`)
	}
	all, err := newWorld().checker(t).Check(t.Context(), cluster(mirrors(5000)), nil, false)
	if err != nil || len(all) != 51 {
		t.Errorf("%d errors, %v", len(all), err)
	}
	got := admission.ValidationResponse("demo", all).Result
	if n := len(got.Details.Causes); n != 51 || !strings.HasSuffix(got.Message, "spec: Invalid value: more is wrong than these 50; correct them first]") {
		t.Errorf("%d causes: %s", n, got.Message)
	}
	if got := admission.ValidationResponse("demo", all[:50]).Result; len(got.Details.Causes) != 50 || strings.Contains(got.Message, "more is wrong") {
		t.Errorf("%+v", got)
	}
	w := newWorld().add(class("local-scs-1-36-v1", map[string]clusterv1.JSONSchemaProps{"even": {
		Type: "array", Items: &clusterv1.JSONSchemaProps{Type: "integer", XValidations: []clusterv1.ValidationRule{{Rule: "self % 2 == 0"}}},
	}}))
	if got := checkNew(t, w, raw("even", "["+strings.Repeat("1,", 200)+"1]")); len(got) != 51 {
		t.Errorf("rules in CEL: %d errors", len(got))
	}
	want := []string{"spec.parameters: Invalid value: all together they are more than 64 KiB, which no stack takes; write less"}
	if d := cmp.Diff(want, checkNew(t, newWorld(), mirrors(10000))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(want, checkNew(t, newWorld().unready(), mirrors(10000))); d != "" {
		t.Error("before there is a release: ", d)
	}
	if errs, err := newWorld().checker(t).CheckProvider(t.Context(), cluster(mirrors(10000), size("none")), nil); err != nil || len(errs) > 0 {
		t.Error("the provider was asked: ", errs, err)
	}
	if got := checkNew(t, newWorld(), raw("retries", strings.Repeat(" ", 64<<10-8)+"5")); got != nil {
		t.Error("as much as may be: ", got)
	}
}

// Schemas are followed as deep as the linter allows. What is deeper is not checked.
func TestDeepSchemas(t *testing.T) {
	for depth, want := range map[int]int{32: 1, 33: 0} {
		w := newWorld()
		schema := strings.Repeat(`{"type":"array","items":`, depth) + `{"type":"string"}` + strings.Repeat("}", depth)
		w.objects["Provider/local"].(*v1alpha1.Provider).Status.Parameters = &provider.JSON{Raw: fmt.Appendf(nil, `{"p":%s}`, schema)}
		got := checkNew(t, w, raw("p", strings.Repeat("[", depth)+"1"+strings.Repeat("]", depth)))
		if len(got) != want {
			t.Errorf("%d deep: %v", depth, got)
		}
	}
}
