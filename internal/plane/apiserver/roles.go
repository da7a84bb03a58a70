package apiserver

import "context"

// rolesCheck is the check of /readyz for the built-in roles.
const rolesCheck = "poststarthook/rbac/bootstrap-roles"

// BootstrapRoles is a component that is ready once Kubernetes' built-in roles exist. The API server begins to
// create them only a second after it serves; no component of ours needs to wait for that.
type BootstrapRoles struct {
	api   *APIServer
	ready chan struct{}
}

// BootstrapRoles returns the component for the roles of this server.
func (a *APIServer) BootstrapRoles() *BootstrapRoles {
	return &BootstrapRoles{api: a, ready: make(chan struct{})}
}

// Name is the component's name.
func (r *BootstrapRoles) Name() string { return "roles" }

// Ready closes when the roles exist.
func (r *BootstrapRoles) Ready() <-chan struct{} { return r.ready }

// Run waits for the roles, then for ctx to end.
func (r *BootstrapRoles) Run(ctx context.Context) error {
	if err := r.api.waitForPath(ctx, "/readyz/"+rolesCheck); err != nil {
		return err
	}
	close(r.ready)
	<-ctx.Done()
	return nil
}
