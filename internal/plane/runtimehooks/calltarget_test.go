package runtimehooks

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Two versions of a hook Ping. Version v1 has a word, version v2 has it in a list. The
// catalog names a hook after its function, so both are methods of the same name.
type (
	requestV1 struct {
		metav1.TypeMeta `json:",inline"`
		runtimehooksv1.CommonRequest
		Word string `json:"word"`
	}
	responseV1 struct {
		metav1.TypeMeta `json:",inline"`
		runtimehooksv1.CommonResponse
		Word string `json:"word"`
	}
	requestV2 struct {
		metav1.TypeMeta `json:",inline"`
		runtimehooksv1.CommonRequest
		Words []string `json:"words"`
	}
	responseV2 struct {
		metav1.TypeMeta `json:",inline"`
		runtimehooksv1.CommonResponse
		Words []string `json:"words"`
	}
	v1 struct{}
	v2 struct{}
)

func (v1) Ping(*requestV1, *responseV1) {}
func (v2) Ping(*requestV2, *responseV2) {}

func (r *requestV1) DeepCopyObject() runtime.Object  { c := *r; return &c }
func (r *responseV1) DeepCopyObject() runtime.Object { c := *r; return &c }
func (r *requestV2) DeepCopyObject() runtime.Object  { c := *r; return &c }
func (r *responseV2) DeepCopyObject() runtime.Object { c := *r; return &c }

// pingCatalog knows both versions and converts requests down and responses up.
func pingCatalog(t *testing.T) *runtimecatalog.Catalog {
	t.Helper()
	down := func(in, out any, _ conversion.Scope) error {
		from, to := in.(*requestV2), out.(*requestV1)
		if len(from.Words) != 1 {
			return errors.New("v1 has one word")
		}
		to.Word, to.Settings = from.Words[0], from.Settings
		return nil
	}
	up := func(in, out any, _ conversion.Scope) error {
		from, to := in.(*responseV1), out.(*responseV2)
		if from.Word == "" {
			return errors.New("v2 has words")
		}
		to.Words, to.CommonResponse = []string{from.Word}, from.CommonResponse
		return nil
	}
	one := &runtimecatalog.Builder{GroupVersion: schema.GroupVersion{Group: "ping.example.com", Version: "v1"}}
	one.RegisterHook(v1{}.Ping, &runtimecatalog.HookMeta{})
	one.Register(func(s *runtime.Scheme) error {
		return errors.Join(
			s.AddConversionFunc((*requestV2)(nil), (*requestV1)(nil), down),
			s.AddConversionFunc((*responseV1)(nil), (*responseV2)(nil), up),
		)
	})
	two := &runtimecatalog.Builder{GroupVersion: schema.GroupVersion{Group: "ping.example.com", Version: "v2"}}
	two.RegisterHook(v2{}.Ping, &runtimecatalog.HookMeta{})
	catalog := runtimecatalog.New()
	if err := errors.Join(one.AddToCatalog(catalog), two.AddToCatalog(catalog)); err != nil {
		t.Fatal(err)
	}
	return catalog
}

// pingV1 answers a request of version v1 with a prefix, or with nothing.
func pingV1(request *requestV1, response *responseV1) error {
	if request.APIVersion != "ping.example.com/v1" || request.Kind != "requestV1" {
		return errors.New("request is a " + request.APIVersion + " " + request.Kind)
	}
	response.Status = runtimehooksv1.ResponseStatusSuccess
	if request.Word != "mute" {
		response.Word = request.Settings["prefix"] + request.Word
	}
	return nil
}

func TestHandlerOfOlderVersion(t *testing.T) {
	hook, err := resolveHook(pingCatalog(t), v1{}.Ping)
	if err != nil {
		t.Fatal(err)
	}
	inGo := func(t *testing.T) *Client {
		c := newClient(t, func(c *Config) { c.Catalog = pingCatalog(t) })
		handle(t, c, Handler{
			Name: "ping.ext", Hook: v1{}.Ping, FailurePolicy: runtimev1.FailurePolicyIgnore,
			Func: func(_ context.Context, _ client.Object, request runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject) error {
				return pingV1(request.(*requestV1), response.(*responseV1))
			},
		})
		warmUp(t, c)
		return c
	}
	elsewhere := func(t *testing.T) *Client {
		config := startExtensionServer(t, map[string]http.HandlerFunc{runtimecatalog.GVHToPath(hook, "ping"): func(w http.ResponseWriter, r *http.Request) {
			request, response := &requestV1{}, &responseV1{}
			if err := errors.Join(json.NewDecoder(r.Body).Decode(request), pingV1(request, response)); err != nil {
				t.Error(err)
			}
			answerJSON(t, response)(w, r)
		}})
		config.Status.Handlers = []runtimev1.ExtensionHandler{{
			Name: "ping.ext", FailurePolicy: runtimev1.FailurePolicyIgnore,
			RequestHook: runtimev1.GroupVersionHook{APIVersion: "ping.example.com/v1", Hook: hook.Hook},
		}}
		c := newClient(t, func(c *Config) { c.Catalog = pingCatalog(t) })
		warmUp(t, c, config)
		return c
	}
	tests := map[string]struct {
		words []string
		reply []string
		want  string // error, which Ignore does not cover
	}{
		"both convert":              {words: []string{"hello"}, reply: []string{"> hello"}},
		"request does not convert":  {words: nil, want: "converting the request to v1: v1 has one word"},
		"response does not convert": {words: []string{"mute"}, want: "converting the response from v1 to v2: v2 has words"},
	}
	for where, start := range map[string]func(*testing.T) *Client{"in Go": inGo, "elsewhere": elsewhere} {
		for name, tt := range tests {
			t.Run(name+" "+where, func(t *testing.T) {
				c := start(t)
				request, response := &requestV2{Words: tt.words}, &responseV2{}
				request.Settings = map[string]string{"prefix": "> "}
				err := c.CallExtension(t.Context(), v2{}.Ping, cluster("gold"), "ping.ext", request, response)
				checkError(t, err, tt.want)
				if diff := cmp.Diff(tt.reply, response.Words); diff != "" {
					t.Errorf("words (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestHandlerOfUnknownVersion(t *testing.T) {
	config := startGateServer(t, answer(success))
	config.Status.Handlers[0].RequestHook.APIVersion = "hooks.runtime.cluster.x-k8s.io/v9"
	config.Status.Handlers[0].FailurePolicy = runtimev1.FailurePolicyIgnore // does not cover this
	_, err := callGate(t.Context(), warmClient(t, config), "gate.ext")
	checkError(t, err, "hook is not registered")
}
