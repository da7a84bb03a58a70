package apiserver

import (
	"context"

	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	openapicontroller "k8s.io/apiextensions-apiserver/pkg/controller/openapi"
	openapiv3controller "k8s.io/apiextensions-apiserver/pkg/controller/openapiv3"
)

// PublishOpenAPI begins to publish the OpenAPI schemas of custom resources, for kubectl explain and the like. It
// takes a sixth of the CPU time of a start and nobody waits for it, so it is called once the plane is ready; a
// second later all kinds are described. It must be called only once.
func (a *APIServer) PublishOpenAPI() { close(a.openAPIRequested) }

// deferOpenAPI keeps the server of custom resources from publishing their schemas as soon as it runs, and does it
// when PublishOpenAPI is called. It must be called after PrepareRun, which makes both services.
func (a *APIServer) deferOpenAPI(ctx context.Context, s *apiextensionsapiserver.CustomResourceDefinitions) {
	g := s.GenericAPIServer
	v2, v3 := g.OpenAPIVersionedService, g.OpenAPIV3VersionedService
	// Without these services, the server does not start its own controllers for them.
	g.OpenAPIVersionedService, g.OpenAPIV3VersionedService = nil, nil
	go func() {
		select {
		case <-ctx.Done():
			return
		case <-a.openAPIRequested:
		}
		crds := s.Informers.Apiextensions().V1().CustomResourceDefinitions()
		go openapicontroller.NewController(crds).Run(g.StaticOpenAPISpec, v2, ctx.Done())
		go openapiv3controller.NewController(crds).Run(v3, ctx.Done())
	}()
}
