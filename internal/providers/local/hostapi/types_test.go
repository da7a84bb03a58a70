package hostapi

import (
	"net/netip"
	"strings"
	"testing"
)

func TestEndpointIsTheFirstAddressOfTheBlock(t *testing.T) {
	for block, want := range map[string]string{"127.1.0.0/20": "127.1.0.1:6443", "127.1.5.9/20": "127.1.0.1:6443", "127.255.240.0/20": "127.255.240.1:6443"} {
		c := Cluster{Addresses: netip.MustParsePrefix(block), Port: 6443}
		if got := c.Endpoint().String(); got != want {
			t.Errorf("%s: %s, want %s", block, got, want)
		}
	}
}

func TestClusterValidate(t *testing.T) {
	for name, c := range map[string]struct {
		uid, block string
		port       int32
		want       string
	}{
		"good":                   {"u", "127.1.0.0/20", 6443, ""},
		"the whole of loopback":  {"u", "127.0.0.0/8", 1, ""},
		"highest port":           {"u", "127.1.0.0/20", 65535, ""},
		"no UID":                 {"", "127.1.0.0/20", 6443, "UID"},
		"no block":               {"u", "", 6443, "no block of loopback"},
		"somebody's addresses":   {"u", "10.0.0.0/20", 6443, "no block of loopback"},
		"more than loopback":     {"u", "127.0.0.0/7", 6443, "no block of loopback"},
		"version 6":              {"u", "::1/128", 6443, "no block of loopback"},
		"no room for machines":   {"u", "127.1.0.0/30", 6443, "too few"},
		"no port":                {"u", "127.1.0.0/20", 0, "port 0"},
		"a port that is none":    {"u", "127.1.0.0/20", 65536, "port 65536"},
		"a port that would wrap": {"u", "127.1.0.0/20", 6443 + 65536, "port 71979"},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := netip.ParsePrefix(c.block)
			check(t, Cluster{UID: c.uid, Addresses: p, Port: c.port}.Validate(), c.want)
		})
	}
}

func TestMachineValidate(t *testing.T) {
	good := MachineSpec{Name: "m-1", Node: "n.example", UID: "u", Version: "v1.36.0", ProviderID: "local://x"}
	for name, c := range map[string]struct {
		change func(*MachineSpec)
		want   string
	}{
		"good":                        {func(*MachineSpec) {}, ""},
		"longest name":                {func(m *MachineSpec) { m.Name = strings.Repeat("a", 253) }, ""},
		"name too long":               {func(m *MachineSpec) { m.Name = strings.Repeat("a", 254) }, "machine name"},
		"no name":                     {func(m *MachineSpec) { m.Name = "" }, "machine name"},
		"name that is another folder": {func(m *MachineSpec) { m.Name = ".." }, "machine name"},
		"name with a path":            {func(m *MachineSpec) { m.Name = "a/../../b" }, "machine name"},
		"hidden name":                 {func(m *MachineSpec) { m.Name = ".a" }, "machine name"},
		"name with a line end":        {func(m *MachineSpec) { m.Name = "a\n" }, "machine name"},
		"node with capitals":          {func(m *MachineSpec) { m.Node = "Node" }, "node name"},
		"no UID":                      {func(m *MachineSpec) { m.UID = "" }, "lacks"},
		"no version":                  {func(m *MachineSpec) { m.Version = "" }, "lacks"},
		"no provider ID":              {func(m *MachineSpec) { m.ProviderID = "" }, "lacks"},
	} {
		t.Run(name, func(t *testing.T) {
			m := good
			c.change(&m)
			check(t, m.Validate(), c.want)
		})
	}
}

func check(t *testing.T, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestIsRunning(t *testing.T) {
	ready, unready := ProcessStatus{Name: "etcd", Ready: true}, ProcessStatus{Name: "kube-apiserver"}
	done := BootStatus{Done: true}
	for name, c := range map[string]struct {
		status MachineStatus
		want   bool
	}{
		"control plane":                      {MachineStatus{ControlPlane: true, Boot: done, Registered: true, Processes: []ProcessStatus{ready}}, true},
		"worker":                             {MachineStatus{Boot: done, Registered: true}, true},
		"switched off":                       {MachineStatus{Boot: done, Registered: true, Off: true}, false},
		"booting":                            {MachineStatus{Registered: true}, false},
		"not in the cluster":                 {MachineStatus{Boot: done}, false},
		"control plane without static pods":  {MachineStatus{ControlPlane: true, Boot: done, Registered: true}, false},
		"control plane with one that is not": {MachineStatus{ControlPlane: true, Boot: done, Registered: true, Processes: []ProcessStatus{ready, unready}}, false},
	} {
		if got := c.status.IsRunning(); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

func TestLayout(t *testing.T) {
	d := Dir(HostsDir("/d") + "/0123")
	m := d.MachineDir("m")
	for want, got := range map[string]string{
		"/d/local/0123/cluster.json":            d.ClusterFile(),
		"/d/local/0123/lock":                    d.LockFile(),
		"/d/local/0123/host.sock":               d.Socket(),
		"/d/local/0123/host.log":                d.LogFile(),
		"/d/local/0123/machines":                d.MachinesDir(),
		"/d/local/0123/machines/m":              string(m),
		"/d/local/0123/machines/m/machine.json": m.SpecFile(),
		"/d/local/0123/machines/m/address":      m.AddressFile(),
		"/d/local/0123/machines/m/boot.json":    m.BootFile(),
		"/d/local/0123/machines/m/node.json":    m.NodeFile(),
		"/d/local/0123/machines/m/off":          m.OffFile(),
		"/d/local/0123/machines/m/partitioned":  m.PartitionFile(),
		"/d/local/0123/machines/m/root":         m.RootFS(),
		m.RootFS() + "/etc/x":                   m.RootFS("/etc", "x"),
		"/d/local/0123/machines/m/log":          m.LogDir(),
		"/d/local/0123/machines/m/log/etcd.log": m.LogFile("etcd"),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
