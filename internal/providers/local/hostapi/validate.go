package hostapi

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
)

// loopback is where all local clusters live.
var loopback = netip.MustParsePrefix("127.0.0.0/8")

// maxPrefixLength is that of the smallest block with room for the endpoint and some machines.
const maxPrefixLength = 26

// nameFormat is that of Kubernetes object names; it also keeps names fit for paths.
var nameFormat = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)

// Validate checks what a host relies on.
func (c Cluster) Validate() error {
	switch {
	case c.UID == "":
		return errors.New("the UID of the cluster is missing")
	case !c.Addresses.IsValid() || !loopback.Contains(c.Addresses.Addr()) || c.Addresses.Bits() < loopback.Bits():
		return fmt.Errorf("addresses %s are no block of loopback addresses", c.Addresses)
	case c.Addresses.Bits() > maxPrefixLength:
		return fmt.Errorf("addresses %s are too few for an endpoint and machines; the block must be a /%d or larger",
			c.Addresses, maxPrefixLength)
	case c.Port < 1 || c.Port > 65535:
		return fmt.Errorf("port %d is none", c.Port)
	}
	return nil
}

// Validate checks what a host relies on.
func (m MachineSpec) Validate() error {
	for what, name := range map[string]string{"machine": m.Name, "node": m.Node} {
		if !nameFormat.MatchString(name) {
			return fmt.Errorf("%s name %q is none that Kubernetes takes", what, name)
		}
	}
	if m.UID == "" || m.Version == "" || m.ProviderID == "" {
		return fmt.Errorf("machine %s lacks its UID, version or provider ID", m.Name)
	}
	return nil
}
