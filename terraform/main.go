// Command terraform-provider-polder makes Kubernetes clusters with Terraform or OpenTofu, by the REST API of a plane.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/polder-kaas/polder/terraform/internal/provider"
)

// version is set by the linker.
var version = "dev"

// address is what configurations name the provider by.
const address = "registry.terraform.io/polder-kaas/polder"

func main() {
	//nolint:forbidigo // variables beside the configuration are how such providers are told their tokens
	env := os.Getenv
	if err := providerserver.Serve(context.Background(), provider.New(version, env), providerserver.ServeOpts{Address: address}); err != nil { //nolint:forbidigo // the process's own
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}
