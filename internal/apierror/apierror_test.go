package apierror

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestIsObjectNotFound(t *testing.T) {
	widgets := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	said := apierrors.NewNotFound(widgets, "x")
	tests := map[string]struct {
		err  error
		want bool
	}{
		"the server says it of the object":       {said, true},
		"wrapped":                                {fmt.Errorf("reading: %w", said), true},
		"a cache says it, by the kind":           {apierrors.NewNotFound(schema.GroupResource{Resource: "Widget"}, "x"), true},
		"events of one group, asked in another":  {apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, "x"), true},
		"of another object":                      {apierrors.NewNotFound(widgets, "y"), false},
		"of another kind":                        {apierrors.NewNotFound(schema.GroupResource{Resource: "gadgets"}, "x"), false},
		"of its namespace":                       {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "x"), false},
		"a page":                                 {apierrors.NewGenericServerResponse(404, "get", widgets, "x", "404 page not found", 0, true), false},
		"a page of a gateway":                    {apierrors.NewGenericServerResponse(502, "get", widgets, "x", "bad gateway", 0, true), false},
		"a Status without details":               {&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Code: 404}}, false},
		"a Status with details and no name":      {apierrors.NewNotFound(widgets, ""), false},
		"a conflict":                             {apierrors.NewConflict(widgets, "x", errors.New("changed")), false},
		"gone":                                   {apierrors.NewResourceExpired("x"), false},
		"an unknown kind":                        {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Widget"}}, false},
		"no answer":                              {errors.New("connection refused"), false},
		"no error":                               {nil, false},
		"a Status that is wrapped, and a page's": {fmt.Errorf("a: %w", apierrors.NewGenericServerResponse(404, "get", widgets, "x", "", 0, true)), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := IsObjectNotFound(tt.err, "widgets", "x"); got != tt.want {
				t.Errorf("it is %t for %v", got, tt.err)
			}
			if got := IgnoreObjectNotFound(tt.err, "widgets", "x"); (got == nil) != (tt.want || tt.err == nil) {
				t.Errorf("what is left is %v", got)
			}
		})
	}
}

func TestIgnoreNotFound(t *testing.T) {
	widgets := schema.GroupResource{Resource: "widgets"}
	if err := IgnoreNotFound(fmt.Errorf("writing: %w", apierrors.NewNotFound(widgets, "x"))); err != nil {
		t.Errorf("of an object that is gone: %v", err)
	}
	page := apierrors.NewGenericServerResponse(404, "patch", widgets, "x", "404 page not found", 0, true)
	for _, err := range []error{page, fmt.Errorf("writing: %w", page), errors.New("no answer"), apierrors.NewConflict(widgets, "x", nil)} {
		if !errors.Is(IgnoreNotFound(err), err) {
			t.Errorf("%v is lost", err)
		}
	}
	if err := IgnoreNotFound(nil); err != nil {
		t.Error(err)
	}
}
