package apply

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func invalid(kind string, all ...*field.Error) error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: kind}, "x", all)
}

func TestExplainError(t *testing.T) {
	path := field.NewPath("spec", "template")
	resource := schema.GroupResource{Resource: "secrets"}
	for _, tc := range []struct {
		name string
		kind string
		err  error
		want string
	}{
		{"an error", "ConfigMap", errors.New("boom"), "applying ConfigMap home/x: boom"},
		{"a fixed field", "Job", invalid("Job", field.Invalid(path, strings.Repeat("x", 4000), "field is immutable")),
			"Job home/x is there and cannot be changed in spec.template; give it another name in the chart, or let it be made anew with kubectl delete -n home job x"},
		{"fixed fields of a set", "StatefulSet",
			invalid("StatefulSet", field.Forbidden(field.NewPath("spec"), "updates to statefulset spec for fields other than 'replicas' are forbidden")),
			"StatefulSet home/x is there and cannot be changed in spec; "},
		{"a wrong field", "ConfigMap", invalid("ConfigMap", field.Invalid(path, "v", "is wrong")),
			`applying ConfigMap home/x: ConfigMap "x" is invalid: spec.template: Invalid value: "v": is wrong`},
		{"a wrong field of a secret", "Secret", invalid("Secret", field.Invalid(path, "hunter2", "is wrong")),
			"applying Secret home/x: the API server says Invalid, because of spec.template; "},
		{"a fixed field of a secret", "Secret", invalid("Secret", field.Invalid(path, "hunter2", "field is immutable")),
			"Secret home/x is there and cannot be changed in spec.template; "},
		{"a secret that is no secret", "Secret", apierrors.NewBadRequest("expected string, got hunter2"), "applying Secret home/x: the API server says BadRequest; "},
		{"a secret that breaks the server", "Secret", apierrors.NewInternalError(errors.New("expected string, got hunter2")),
			"applying Secret home/x: the API server says InternalError; "},
		{"a secret that is forbidden", "Secret", apierrors.NewForbidden(resource, "x", errors.New("no right")),
			`applying Secret home/x: secrets "x" is forbidden: no right`},
		{"a secret, and no server", "Secret", errors.New("connection refused"), "applying Secret home/x: connection refused"},
		{"another uid", "ConfigMap", invalid("ConfigMap", field.Invalid(field.NewPath("metadata", "uid"), "u", "field is immutable")),
			"ConfigMap home/x was changed by somebody else at the same moment"},
		{"a conflict", "ConfigMap", apierrors.NewConflict(resource, "x", errors.New("why")), "ConfigMap home/x was changed by somebody else at the same moment"},
		{"no namespace", "ConfigMap", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "home"),
			"ConfigMap home/x has no namespace to be in; let the chart bring Namespace home"},
		{"our own words", "ConfigMap", pendingError("wait"), "wait"},
		{"our own refusal", "ConfigMap", refusal("no"), "no"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := explainError("applying", Ref{Version: "v1", Kind: tc.kind, Namespace: "home", Name: "x"}, tc.err)
			if !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("it says %q, not %q", err, tc.want)
			}
			if !errors.Is(err, tc.err) {
				t.Error("the error is lost")
			}
		})
	}
	custom := explainError("applying", Ref{Group: "example.com", Kind: "Secret", Name: "x"}, apierrors.NewBadRequest("its words"))
	if !strings.Contains(custom.Error(), "its words") {
		t.Errorf("a custom kind is no Secret: %v", custom)
	}
}

func TestJoinErrors(t *testing.T) {
	if err := JoinErrors([]Result{{}, {}}); err != nil || !IsPending([]Result{{}}) {
		t.Errorf("the error is %v", err)
	}
	waits := []Result{{}, {Err: pendingError("a waits")}, {Err: pendingError("b waits")}}
	if err := JoinErrors(waits); !errors.Is(err, ErrPending) || !IsPending(waits) || err.Error() != "a waits; b waits" {
		t.Errorf("the error is %v", err)
	}
	mixed := append(waits, Result{Err: errors.New("c failed")})
	if err := JoinErrors(mixed); errors.Is(err, ErrPending) || IsPending(mixed) || err.Error() != "c failed; a waits; b waits" {
		t.Errorf("the error is %v", err)
	}
	var many []Result
	for i := range 12 {
		many = append(many, Result{Err: fmt.Errorf("%d failed", i)})
	}
	if err := JoinErrors(many); !strings.HasSuffix(err.Error(), "9 failed; and 2 more") {
		t.Errorf("the error is %v", err)
	}
}
