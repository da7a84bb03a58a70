package service

import (
	"strings"
	"testing"

	"github.com/polder-kaas/polder/internal/program/exit"
)

// changes are run one after the other in each of two tenants.
func changes(t *testing.T, c *commander) []commandCase {
	t.Helper()
	file := func(name, text string) string { return c.write(t, name+".yaml", text) }
	one := clusterFile("one") + "  workers: [{name: w, replicas: 1}]\n"
	oneFile := file("one", one)
	more := file("more", strings.Replace(one, "{a: b}", "{c: d}", 1)+"  parameters: {}\n")
	none := file("none", strings.Replace(clusterFile("none"), "name: scs", "name: nothing", 1))
	kept := file("kept", clusterFile("kept")+"  deletionProtection: true\n")
	lifted := file("lifted", clusterFile("kept")+"  deletionProtection: false\n")
	ready := file("ready", strings.Replace(clusterFile("ready"), "  paused: true\n", "", 1))
	const ed, vi, admin = "editor", "viewer", "admin"
	return []commandCase{
		{ed, exit.OK, "There are no clusters in namespace TENANT", []string{"get"}},
		{ed, exit.OK, "workloadcluster/ready created", []string{"apply", "-f", ready}},
		{ed, exit.OK, "would be created", []string{"create", "-f", oneFile, "--dry-run=server"}},
		{ed, exit.OK, "workloadcluster/one created", []string{"create", "-f", oneFile}},
		{ed, exit.Failure, "there is a cluster", []string{"create", "-f", oneFile}},
		{ed, exit.OK, "replicas: 1", []string{"create", "two", "-f", oneFile, "--dry-run=server", "-o", "yaml"}},
		{vi, exit.Failure, "oidc:TENANT-viewer may not create workloadclusters in namespace TENANT", []string{"create", "two", "-f", oneFile}},
		{ed, exit.Usage, "spec.stack.name: ", []string{"create", "-f", none}},
		{ed, exit.Usage, "no name for a cluster", []string{"create", "No", "--stack", "scs"}},
		{ed, exit.Usage, "this asks for 51 more", []string{"create", "big", "--stack", "scs", "--provider", "local", "--workers", "50"}},
		{ed, exit.Failure, "oidc:TENANT-editor may not create workloadclusters in namespace cli-other", []string{"create", "-f", oneFile, "-n", "cli-other"}},
		{ed, exit.OK, "", []string{"wait", "one", "--for", "phase=Paused"}},
		{ed, exit.Timeout, "is not deleted after", []string{"wait", "one", "--for", "deleted", "--timeout", "1s"}},
		{ed, exit.OK, "workloadcluster/one configured", []string{"apply", "-f", oneFile}}, // its fields were those of create
		{ed, exit.OK, "workloadcluster/one configured", []string{"apply", "-f", more}},
		{ed, exit.Usage, "spec.stack.name: ", []string{"apply", "-f", none}},
		{vi, exit.Failure, "may not patch workloadclusters in namespace TENANT", []string{"apply", "-f", none}},
		{ed, exit.Failure, "may not get workloadclusters in namespace cli-other", []string{"apply", "-f", oneFile, "-n", "cli-other"}},
		{ed, exit.OK, "scaled: pool w 1 to 2", []string{"scale", "one", "--workers", "2"}},
		{ed, exit.OK, "workloadcluster/one unchanged", []string{"scale", "one", "--workers", "2"}},
		{ed, exit.Usage, "has no pool", []string{"scale", "one", "--pool", "x=2"}},
		{ed, exit.Usage, "this asks for 38 more", []string{"scale", "one", "--workers", "40"}},
		{vi, exit.Failure, "may not patch workloadclusters", []string{"scale", "one", "--workers", "3"}},
		{ed, exit.Usage, "there is no cluster \"no\"", []string{"scale", "no", "--workers", "3"}},
		{ed, exit.OK, "", []string{"upgrade", "one"}},
		{ed, exit.OK, "is on its way to 1.37", []string{"upgrade", "one", "--kubernetes", "1.37"}},
		{ed, exit.OK, "unchanged", []string{"upgrade", "one", "--kubernetes", "1.37"}},
		{ed, exit.Usage, "is not lost", []string{"recreate", "one", "--yes"}},
		{ed, exit.OK, "workloadcluster/kept created", []string{"apply", "-f", kept}},
		{ed, exit.Failure, "PROTECTED", []string{"delete", "kept", "--yes"}},
		{ed, exit.OK, "workloadcluster/kept configured", []string{"apply", "-f", lifted}},
		{vi, exit.Failure, "may not delete workloadclusters in namespace TENANT", []string{"delete", "kept", "--yes"}},
		{ed, exit.OK, "Cluster kept is gone", []string{"delete", "kept", "--yes", "--wait"}},
		{ed, exit.Usage, "there is no cluster \"kept\"", []string{"delete", "kept", "--yes"}},
		{ed, exit.Usage, `there is no cluster "kept"`, []string{"kubeconfig", "kept"}},
		{vi, exit.Failure, "may not be admin", []string{"kubeconfig", "one", "--role", "admin"}},
		{admin, exit.OK, "user:oidc:bob is viewer of tenant", []string{"tenant", "add", "TENANT", "--viewers", "user:oidc:bob"}},
		{admin, exit.OK, "is without user:oidc:bob", []string{"tenant", "remove", "TENANT", "user:oidc:bob"}},
		{admin, exit.Usage, "is not in tenant", []string{"tenant", "remove", "TENANT", "user:oidc:bob"}},
		{ed, exit.Failure, "may not update tenants", []string{"tenant", "add", "TENANT", "--viewers", "user:oidc:bob"}},
		{admin, exit.Failure, "may not get tenants in all namespaces", []string{"tenant", "add", "cli-other", "--viewers", "user:oidc:bob"}},
		{ed, exit.OK, "Cluster ready is ready", []string{"wait", "ready", "--timeout", "5m"}},
	}
}

// readers are run in every way in the same tenant.
func readers(t *testing.T, c *commander) []commandCase {
	t.Helper()
	moved := c.write(t, "moved.yaml", clusterFile("moved"))
	const ed, vi, admin = "editor", "viewer", "admin"
	return []commandCase{
		{vi, exit.OK, "one", []string{"get"}},
		{vi, exit.OK, "one", []string{"get", "-o", "wide"}},
		{vi, exit.OK, "one", []string{"get", "one", "ready"}},
		{vi, exit.OK, "kind: WorkloadCluster", []string{"get", "one", "-o", "yaml"}},
		{vi, exit.OK, `"kind": "List"`, []string{"get", "-o", "json"}},
		{vi, exit.OK, "workloadcluster/one", []string{"get", "-o", "name"}},
		{vi, exit.Usage, `there is no cluster "no"`, []string{"get", "one", "no"}},
		{vi, exit.Usage, `there is no cluster "no"`, []string{"get", "no", "--watch"}},
		{vi, exit.Failure, "oidc:TENANT-viewer may not list workloadclusters in namespace cli-other", []string{"get", "-n", "cli-other"}},
		{vi, exit.Failure, "may not list workloadclusters in namespace nobodys", []string{"get", "-n", "nobodys"}},
		{vi, exit.Failure, "may not get workloadclusters in namespace cli-other", []string{"describe", "one", "-n", "cli-other"}},
		{vi, exit.OK, "Running", []string{"describe", "ready"}},
		{vi, exit.NotReady, "Cluster TENANT/one: Paused", []string{"describe", "one"}},
		{vi, exit.Usage, `there is no cluster "No"`, []string{"describe", "No"}},
		{vi, exit.OK, "Cluster ready is ready", []string{"wait", "ready"}},
		{vi, exit.Usage, "there is no cluster", []string{"wait", "no"}},
		{vi, exit.OK, "kind: WorkloadCluster", []string{"export", "one"}},
		{vi, exit.OK, "provider: local", []string{"export", "one", "--exact"}},
		{vi, exit.OK, "1.37", []string{"upgrade", "ready"}},
		{vi, exit.OK, "local", []string{"providers"}},
		{vi, exit.OK, "local", []string{"providers", "local"}},
		{vi, exit.OK, "kind: Provider", []string{"providers", "local", "-o", "yaml"}},
		{vi, exit.Usage, `"no"`, []string{"providers", "no"}},
		{vi, exit.OK, "scs", []string{"stacks"}},
		{vi, exit.OK, "kind: ClusterStack", []string{"stacks", "-o", "yaml"}},
		{vi, exit.OK, "PARAMETER", []string{"stacks", "scs"}},
		{vi, exit.OK, "release: local-scs-1-36", []string{"stacks", "scs", "--kubernetes", "1.36", "-o", "yaml"}},
		{vi, exit.Usage, "there is no stack", []string{"stacks", "no"}},
		{ed, exit.OK, "apiVersion", []string{"create", "-f", moved, "--provider", "local", "--dry-run"}},
		{ed, exit.Usage, "there is no provider", []string{"create", "-f", moved, "--provider", "none", "--dry-run=server"}},
		{ed, exit.OK, "oidc:TENANT-editor", []string{"whoami"}},
		{admin, exit.OK, "oidc:TENANT-admins", []string{"whoami", "-o", "json"}},
		{vi, exit.OK, "group:oidc:TENANT-admins", []string{"tenant", "describe", "cli-rest"}},
		{vi, exit.Failure, "may not get tenants in all namespaces", []string{"tenant", "describe", "cli-other"}},
		{vi, exit.Failure, "which is for operators", []string{"kubeconfig", "ready", "--admin"}},
		{ed, exit.Usage, "there is no role", []string{"kubeconfig", "ready", "--role", "x"}},
	}
}
