// Package planepath has the paths of the plane's API server that Kubernetes does not have.
package planepath

// Paths of the plane.
const (
	Tenants = "/polder/tenants" // the tenants that somebody belongs to: everybody may ask
	Audit   = "/polder/audit/"  // and the name of a tenant: the record of what was done in it, for its admins
	Status  = "/polder/status"  // how the plane is: for its operators

	// Machines and the names of a tenant and of its cluster: the machines of that, for members of the tenant, who have no
	// rights to kinds of Cluster API.
	Machines = "/polder/machines/"
)
