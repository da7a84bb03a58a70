// Package confine shuts the processes of a local cluster in, by the kernel and without root. What a cluster runs is
// told by people the plane does not trust: customers, stack authors, and whoever is the admin of a workload cluster.
// The allow-lists of package rewrite are the first guard against them; this one does not care what was asked for.
//
// A host is started in user, network, mount and IPC namespaces of its own. It sees no files but those of its cluster
// and what every program needs, no network but its cluster's, and no sockets of others. Landlock says the same once
// more, and tells the machines of one cluster apart; a seccomp filter takes away what none of these programs needs.
// Everything is set in the process itself before it reads anything.
package confine
