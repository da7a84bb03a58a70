package host

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/polder-kaas/polder/internal/files/atomicfile"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// firstMachineIndex is the place of the first machine in the block; the endpoint is before it.
const firstMachineIndex = 11

// assignAddress returns the address the machine has or, for a new one, records a free one of the cluster's block.
func (h *Host) assignAddress(dir hostapi.MachineDir) (netip.Addr, error) {
	old, err := h.readAddress(dir)
	if !errors.Is(err, os.ErrNotExist) {
		return old, err
	}
	used := map[netip.Addr]bool{}
	for _, m := range h.listMachines() {
		used[m.address] = true
	}
	a, err := freeAddress(h.cluster.Addresses, used)
	if err != nil {
		return a, err
	}
	return a, atomicfile.Write(dir.AddressFile(), []byte(a.String()+"\n"), 0o600)
}

// readAddress returns the address that is recorded for the machine.
func (h *Host) readAddress(dir hostapi.MachineDir) (netip.Addr, error) {
	b, err := os.ReadFile(dir.AddressFile())
	if err != nil {
		return netip.Addr{}, err
	}
	a, err := netip.ParseAddr(strings.TrimSpace(string(b)))
	if err != nil || !h.cluster.Addresses.Contains(a) {
		return netip.Addr{}, fmt.Errorf("%s holds no address of %s", dir.AddressFile(), h.cluster.Addresses)
	}
	return a, nil
}

// freeAddress is the first after the highest that is used, so that one just given back is not
// taken again at once; only when the end of the block is reached the gaps are filled.
func freeAddress(block netip.Prefix, used map[netip.Addr]bool) (netip.Addr, error) {
	first := block.Masked().Addr()
	for range firstMachineIndex {
		first = first.Next()
	}
	next := first
	for a := range used {
		if !a.Less(next) {
			next = a.Next()
		}
	}
	for _, from := range []netip.Addr{next, first} {
		for a := from; block.Contains(a) && block.Contains(a.Next()); a = a.Next() {
			if !used[a] {
				return a, nil
			}
		}
	}
	return netip.Addr{}, fmt.Errorf("no address of %s is free", block)
}
