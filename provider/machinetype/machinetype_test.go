package machinetype_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/provider/machinetype"
)

func TestParse(t *testing.T) {
	type (
		of  = machinetype.Type
		ext = machinetype.Extensions
	)
	for name, want := range map[string]of{
		"SCS-2V-4":         {CPUs: 2, CPU: machinetype.Virtual, MemoryMiB: 4096},
		"SCS-2C-4-10n":     {CPUs: 2, CPU: machinetype.Core, MemoryMiB: 4096, Disks: 1, DiskGB: 10, Disk: machinetype.Network},
		"SCS-8Ti-32-50p":   {CPUs: 8, CPU: machinetype.Thread, Insecure: true, MemoryMiB: 32768, Disks: 1, DiskGB: 50, Disk: machinetype.NVMe},
		"SCS-1L-1u-5":      {CPUs: 1, CPU: machinetype.LowShare, MemoryMiB: 1024, NoECC: true, Disks: 1, DiskGB: 5},
		"SCS-2C-3.5uo-10h": {CPUs: 2, CPU: machinetype.Core, MemoryMiB: 3584, NoECC: true, Overcommitted: true, Disks: 1, DiskGB: 10, Disk: machinetype.HardDisk},
		"SCS-1V-0.5":       {CPUs: 1, CPU: machinetype.Virtual, MemoryMiB: 512},
		"SCS-2C-4-3x10s":   {CPUs: 2, CPU: machinetype.Core, MemoryMiB: 4096, Disks: 3, DiskGB: 10, Disk: machinetype.SolidDisk},
		"SCS-2C-4-":        {CPUs: 2, CPU: machinetype.Core, MemoryMiB: 4096, Disks: 1},
		"SCS-2C-4-n":       {CPUs: 2, CPU: machinetype.Core, MemoryMiB: 4096, Disks: 1, Disk: machinetype.Network},
		"SCS-2C-4-_ib":     {CPUs: 2, CPU: machinetype.Core, MemoryMiB: 4096, Disks: 1, Extensions: ext{InfiniBand: true}},
		"SCS-2C-4_bms_z3": {
			CPUs: 2, CPU: machinetype.Core, MemoryMiB: 4096, Extensions: ext{Hypervisor: "bms", Processor: "z3"},
		},
		"SCS-16T-64-200s_kvm_hwv_i3hh_GNa-64h_ib": {
			CPUs: 16, CPU: machinetype.Thread, MemoryMiB: 65536, Disks: 1, DiskGB: 200, Disk: machinetype.SolidDisk,
			Extensions: ext{Hypervisor: "kvm", Nested: true, Processor: "i3hh", GPU: "GNa-64h", InfiniBand: true},
		},
		"SCS-4C-16-2x200p_a1": {CPUs: 4, CPU: machinetype.Core, MemoryMiB: 16384, Disks: 2, DiskGB: 200, Disk: machinetype.NVMe, Extensions: ext{Processor: "a1"}},
		"SCS-4C-16_gI0.9-8":   {CPUs: 4, CPU: machinetype.Core, MemoryMiB: 16384, Extensions: ext{GPU: "gI0.9-8"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := machinetype.Parse(name)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			if got.String() != name {
				t.Errorf("written as %s", got)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for name, want := range map[string]string{
		"m1.small":              "is no portable name of a machine type: those begin with SCS-",
		"":                      "those begin with SCS-",
		"scs-2V-4":              "those begin with SCS-",
		"SCS-":                  "it has no memory",
		"SCS-2V":                "it has no memory",
		"SCS-2-4":               `"2" does not say what CPUs they are`,
		"SCS-2iT-4":             `"2iT" does not say what CPUs they are`,
		"SCS-2X-4":              `"2X" does not say what CPUs they are`,
		"SCS-V-4":               `"V" is no number of CPUs`,
		"SCS-0V-4":              `"0V" is no number of CPUs`,
		"SCS-02V-4":             `"02V" is no number of CPUs`,
		"SCS-99999999V-4":       "is no number of CPUs",
		"SCS-2V-":               `"" is no amount of memory`,
		"SCS-2V-0":              `"0" is no amount of memory`,
		"SCS-2V-4ou":            `"4ou" is no amount of memory`,
		"SCS-2V-4.25":           `"4.25" is no amount of memory`,
		"SCS-2V-4-1.5n":         `"1.5n" is no disk`,
		"SCS-2V-4-0":            `"0" is no disk`,
		"SCS-2V-4-10q":          `"10q" is no disk`,
		"SCS-2V-4-0x10":         `"0x10" is no number of disks`,
		"SCS-2V-4-x10":          `"x10" is no number of disks`,
		"SCS-2V-4-2x":           `"2x" is no number of disks`,
		"SCS-2V-4-10-20":        `"10-20" is no disk`,
		"SCS-2C-4-10_hwv_xen":   `the extension "xen" is out of order`,
		"SCS-2C-4-10_z3_z3":     `the extension "z3" is out of order`,
		"SCS-2C-4-10_":          `nobody knows the extension ""`,
		"SCS-2C-4-10_fast":      `nobody knows the extension "fast"`,
		"SCS-2C-4-10_i3hhhh":    `nobody knows the extension "i3hhhh"`,
		"SCS-2C-4-10_GX":        `nobody knows the extension "GX"`,
		"SCS:2V:4":              "those begin with SCS-",
		"SCS-2V-4 ":             "is no amount of memory",
		"SCS-2V-4\n":            "is no amount of memory",
		"SCS-2V-4-" + long(300): "is no disk",
	} {
		_, err := machinetype.Parse(name)
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 400 {
			t.Errorf("%.40q: %v, want %s", name, err, want)
		}
	}
}

func long(n int) string { return strings.Repeat("9", n) }

func TestGives(t *testing.T) {
	for _, c := range []struct {
		name               string
		cpus, memory, disk int
		want               bool
	}{
		{"SCS-2V-4", 2, 4096, 0, true},
		{"SCS-2V-4", 0, 0, 0, true},
		{"SCS-2V-4", 3, 4096, 0, false},
		{"SCS-2V-4", 2, 4097, 0, false},
		{"SCS-2V-4", 2, 4096, 10, false},
		{"SCS-2V-4-10", 2, 4096, 10, true},
		{"SCS-2V-4-10", 2, 4096, 11, false},
		{"SCS-2V-4-2x10", 2, 4096, 20, false}, // two disks are not one
	} {
		m, err := machinetype.Parse(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Satisfies(c.cpus, c.memory, c.disk); got != c.want {
			t.Errorf("%s for %d, %d, %d: %t", c.name, c.cpus, c.memory, c.disk, got)
		}
	}
}

// Whatever is read is written as the same name, but for generations and such that can be written in two ways.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"SCS-2V-4", "SCS-8Ti-32uo-2x50p_kvm_hwv_z3h_GNa-14h_ib", "SCS-1L-0.5-", "SCS-2C-4-n_bms"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := machinetype.Parse(s)
		if err != nil {
			return
		}
		again, err := machinetype.Parse(m.String())
		if err != nil || again != m {
			t.Errorf("%q is written as %s, which is read as %+v: %v", s, m, again, err)
		}
	})
}
