package cluster

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/polder-kaas/polder/internal/program/exit"
)

func TestConnectProblems(t *testing.T) {
	f := newFakePlane(t)
	two := filepath.Join(t.TempDir(), "two")
	f.WriteFile(two, `{"apiVersion":"v1","kind":"Config","contexts":[{"name":"b","context":{"cluster":"x"}},{"name":"a","context":{"cluster":"x"}}],"clusters":[{"name":"x","cluster":{"server":"http://127.0.0.1:1"}}]}`)
	f.expectOutput(exit.Usage, "", "there is no file /nowhere/x; name a kubeconfig with --kubeconfig", "get", "--kubeconfig", "/nowhere/x")
	f.expectOutput(exit.Usage, "", two+` has no context "c"; choose from: a, b`, "get", "--kubeconfig", two, "--context", "c")
	f.expectOutput(exit.Failure, "",
		"the plane at http://127.0.0.1:1 does not answer: dial tcp 127.0.0.1:1: connect: connection refused; check the address in your kubeconfig; for a plane on this machine, see: polder status and polder up", "get", "--kubeconfig", two, "--context", "a")
	f.WriteKubeconfig("http://127.0.0.1:1", "")
	f.expectOutput(exit.Failure, "",
		"the plane at http://127.0.0.1:1 does not answer: dial tcp 127.0.0.1:1: connect: connection refused; see how it is with: polder status, start it with: polder up", "get", "-n", "x")
	f.WriteFile(filepath.Join(f.Dir, "admin.kubeconfig"), "")
	f.expectOutput(exit.Failure, "", fmt.Sprintf("there is no plane in %s yet; start one with: polder up", f.Dir), "get")
	f.WriteFile(two, "{")
	if _, errs, code := f.runWithInput("", "get", "--kubeconfig", two); code != exit.Failure || !strings.HasPrefix(errs, two+" cannot be read as a kubeconfig: ") {
		t.Errorf("it ends with %d: %s", code, errs)
	}
}

func TestRefusals(t *testing.T) {
	f := newFakePlane(t)
	for _, tt := range []struct {
		s    metav1.Status
		code int
		want string
	}{
		{refusal(403, metav1.StatusReasonForbidden, "",
			`workloadclusters.polder.dev is forbidden: User "anna" cannot list resource "workloadclusters" in API group "polder.dev" in the namespace "default"`),
			exit.Failure, "listing clusters: anna may not list workloadclusters in namespace default; ask the plane's operator for the right, or choose another namespace with -n"},
		{refusal(403, metav1.StatusReasonForbidden, "", `User "anna" cannot list resource "workloadclusters" in API group "polder.dev" at the cluster scope`),
			exit.Failure, "listing clusters: anna may not list workloadclusters in all namespaces; ask the plane's operator for the right, or choose another namespace with -n"},
		{refusal(403, metav1.StatusReasonForbidden, "demo", `x is forbidden: ValidatingAdmissionPolicy 'a' with binding 'b' denied request: it is protected`),
			exit.Failure, "listing clusters: the plane refuses it: it is protected"},
		{refusal(401, metav1.StatusReasonUnauthorized, "", "Unauthorized"), exit.Failure,
			"the plane at URL does not know who you are: your certificate or token is wrong or has ended; ask the plane's operator for a new kubeconfig"},
		{refusal(404, metav1.StatusReasonNotFound, "", "the server could not find the requested resource"), exit.Failure,
			"the plane at URL does not know the kinds of Polder: it is another cluster, its polderd is older than this polder, or something in front of it answers in its place"},
		{refusal(400, metav1.StatusReasonBadRequest, "", "no\nsense"), exit.Usage, "listing clusters: the plane refuses it: no sense"},
		{refusal(409, metav1.StatusReasonConflict, "demo", "x"), exit.Failure,
			"listing clusters: somebody else changed it at the same time; look at it and try again"},
		{refusal(422, metav1.StatusReasonInvalid, "demo", "it is all wrong"), exit.Usage, "listing clusters: the plane refuses it: it is all wrong"},
		{refusal(507, metav1.StatusReasonUnknown, "", "out of room"), exit.Failure, "listing clusters: the plane at URL says: out of room"},
	} {
		f.refuse["GET "+clusterPath] = tt.s
		_, errs, code := f.runWithInput("", "get")
		if i := strings.Index(errs, "http://"); i >= 0 {
			errs = errs[:i] + "URL" + errs[i+strings.Index(errs[i:]+" ", " "):]
		}
		if code != tt.code || errs != tt.want {
			t.Errorf("%s: it ends with %d: %s", tt.s.Message, code, errs)
		}
	}
}

func TestNamesComplete(t *testing.T) {
	f := newFakePlane(t, aWorkload("Ready", ""), aWorkload("", "", withName("other")))
	for args, want := range map[string]string{"get ": "demo\tReady\nother\n:4\n", "get demo ": "other\n:4\n", "wait demo ": ":4\n"} {
		out, _, _ := f.runWithInput("", append([]string{"__complete"}, strings.Split(args, " ")...)...)
		if out != want {
			t.Errorf("%q completes to %q", args, out)
		}
	}
}
