package runtimehooks

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reply is what one handler of BeforeClusterUpgrade does.
type reply struct {
	name    string
	message string
	retry   int32
	err     error
}

func newReplyHandler(r reply, began *[]string) Handler {
	return onUpgrade(r.name, func(_ context.Context, _ *runtimehooksv1.BeforeClusterUpgradeRequest, response *runtimehooksv1.BeforeClusterUpgradeResponse) error {
		*began = append(*began, r.name)
		response.Message, response.RetryAfterSeconds = r.message, r.retry
		return r.err
	})
}

func TestCallAllExtensions(t *testing.T) {
	stale := runtimehooksv1.CommonRetryResponse{
		CommonResponse:    runtimehooksv1.CommonResponse{Status: "stale", Message: "stale"},
		RetryAfterSeconds: 1,
	}
	summary := func(message string, retry int32) runtimehooksv1.CommonRetryResponse {
		return runtimehooksv1.CommonRetryResponse{
			CommonResponse:    runtimehooksv1.CommonResponse{Status: runtimehooksv1.ResponseStatusSuccess, Message: message},
			RetryAfterSeconds: retry,
		}
	}
	tests := map[string]struct {
		replies []reply
		began   []string
		want    runtimehooksv1.CommonRetryResponse
		err     string
	}{
		"no handlers": {want: summary("", 0)},
		"one handler": {
			replies: []reply{{name: "a.polder", message: "wait", retry: 9}},
			began:   []string{"a.polder"},
			want:    summary("wait", 9),
		},
		"nobody blocks": {
			replies: []reply{{name: "a.polder"}, {name: "b.polder", message: "done"}},
			began:   []string{"a.polder", "b.polder"},
			want:    summary("done", 0),
		},
		"shortest time wins, but not zero": {
			replies: []reply{
				{name: "c.polder", message: "three", retry: 7}, {name: "a.polder", message: "one", retry: 30}, {name: "b.polder"},
				{name: "d.polder", message: "four", retry: 12},
			},
			began: []string{"a.polder", "b.polder", "c.polder", "d.polder"},
			want:  summary("one, three, four", 7),
		},
		"first error stops": {
			replies: []reply{{name: "a.polder", retry: 5}, {name: "b.polder", err: errors.New("no disk")}, {name: "c.polder"}},
			began:   []string{"a.polder", "b.polder"},
			want:    stale,
			err:     `of hook BeforeClusterUpgrade.hooks.runtime.cluster.x-k8s.io: calling extension handler "b.polder": no disk`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := warmClient(t)
			var began []string // written by one handler after the other, else the race detector reports it
			for _, r := range tt.replies {
				handle(t, c, newReplyHandler(r, &began))
			}
			response := &runtimehooksv1.BeforeClusterUpgradeResponse{CommonRetryResponse: stale}
			err := c.CallAllExtensions(t.Context(), runtimehooksv1.BeforeClusterUpgrade, cluster("gold"), upgrade(), response)
			checkError(t, err, tt.err)
			if diff := cmp.Diff(tt.began, began); diff != "" {
				t.Errorf("handlers called (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, response.CommonRetryResponse); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCallAllExtensionsOfHookThatCannotBlock(t *testing.T) {
	c := warmClient(t)
	handle(t, c, Handler{
		Name: "a.polder", Hook: runtimehooksv1.ValidateTopology,
		Func: func(_ context.Context, _ client.Object, _ runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject) error {
			response.SetMessage("fine")
			return nil
		},
	})
	response := &runtimehooksv1.ValidateTopologyResponse{}
	if err := c.CallAllExtensions(t.Context(), runtimehooksv1.ValidateTopology, cluster("gold"), &runtimehooksv1.ValidateTopologyRequest{}, response); err != nil {
		t.Fatal(err)
	}
	want := runtimehooksv1.CommonResponse{Status: runtimehooksv1.ResponseStatusSuccess, Message: "fine"}
	if diff := cmp.Diff(want, response.CommonResponse); diff != "" {
		t.Errorf("response (-want +got):\n%s", diff)
	}
}

func TestCallAllExtensionsGivesEachHandlerItsOwnRequest(t *testing.T) {
	c := warmClient(t)
	meddle := func(_ context.Context, request *runtimehooksv1.BeforeClusterUpgradeRequest, _ *runtimehooksv1.BeforeClusterUpgradeResponse) error {
		if request.Cluster.Labels["kept"] != "yes" {
			return errors.New("somebody changed my request")
		}
		request.Cluster.Labels["kept"] = "no"
		return nil
	}
	handle(t, c, onUpgrade("a.polder", meddle), onUpgrade("b.polder", meddle))
	err := c.CallAllExtensions(t.Context(), runtimehooksv1.BeforeClusterUpgrade, cluster("gold"), upgrade(), &runtimehooksv1.BeforeClusterUpgradeResponse{})
	checkError(t, err, "")
}

func TestCallAllExtensionsChecksCall(t *testing.T) {
	c := warmClient(t)
	err := c.CallAllExtensions(t.Context(), runtimehooksv1.BeforeClusterUpgrade, cluster("gold"), upgrade(), &runtimehooksv1.BeforeClusterCreateResponse{})
	checkError(t, err, "response object")
	err = c.CallAllExtensions(t.Context(), runtimehooksv1.BeforeClusterUpgrade, cluster("gold"), &runtimehooksv1.BeforeClusterCreateRequest{},
		&runtimehooksv1.BeforeClusterUpgradeResponse{})
	checkError(t, err, "request object")
}
