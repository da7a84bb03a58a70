package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// admin is the user of the benchmark itself and of kube-controller-manager.
const admin = "admin"

// writeUsers gives the separate API server its users: an administrator and one for each manager
// of Cluster API, which has the rights of its published role only, as in polderd.
func (s *separate) writeUsers() error {
	ca, err := s.keys.ServerCA()
	if err != nil {
		return err
	}
	var tokens bytes.Buffer
	for _, name := range append([]string{admin}, managers...) {
		token, group := rand.Text(), ""
		if name == admin {
			group = "," + user.SystemPrivilegedGroup
		}
		fmt.Fprintf(&tokens, "%s,%s,%s%s\n", token, userName(name), name, group)
		if err := clientcmd.WriteToFile(kubeconfig(s.ports.url(apiServer), ca, token), s.kubeconfig(name)); err != nil {
			return err
		}
	}
	return os.WriteFile(s.tokenFile(), tokens.Bytes(), 0o600)
}

func (s *separate) tokenFile() string             { return s.path("tokens.csv") }
func (s *separate) kubeconfig(name string) string { return s.path(name + ".kubeconfig") }

// certificateName is the file with certificate and key in the directory of keys.
func certificateName(s *separate) string { return filepath.Base(s.keys.APIServerFile()) }

func userName(name string) string { return "bench:" + name }

func kubeconfig(server string, ca []byte, token string) clientcmdapi.Config {
	c := clientcmdapi.NewConfig()
	c.Clusters["bench"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	c.AuthInfos["bench"] = &clientcmdapi.AuthInfo{Token: token}
	c.Contexts["bench"] = &clientcmdapi.Context{Cluster: "bench", AuthInfo: "bench"}
	c.CurrentContext = "bench"
	return *c
}

// roles are the roles of one manager, and their binding.
func (s *separate) roles(manager string) []client.Object {
	role := s.manifests.Roles[strings.TrimPrefix(manager, managerPrefix)]
	return []client.Object{&role, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: userName(manager)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: userName(manager)}},
	}}
}
