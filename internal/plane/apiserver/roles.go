package apiserver

import "context"

// rolesCheck is the line of /readyz for the built-in roles.
const rolesCheck = "poststarthook/rbac/bootstrap-roles"

// Roles is a component that is ready once Kubernetes' built-in roles exist. The API server
// begins to make them only a second after it serves; nobody of ours needs to wait for that.
type Roles struct {
	api   *APIServer
	ready chan struct{}
}

// Roles are those of this server.
func (a *APIServer) Roles() *Roles { return &Roles{api: a, ready: make(chan struct{})} }

// Name is the component's name.
func (r *Roles) Name() string { return "roles" }

// Ready closes when the roles are there.
func (r *Roles) Ready() <-chan struct{} { return r.ready }

// Run waits for the roles, then for ctx to end.
func (r *Roles) Run(ctx context.Context) error {
	if err := r.api.await(ctx, "/readyz/"+rolesCheck); err != nil {
		return err
	}
	close(r.ready)
	<-ctx.Done()
	return nil
}
