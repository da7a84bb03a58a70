package provider_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/provider"
)

func shape(cpu int32, memory, disk string) *v1alpha1.MachineShape {
	m := &v1alpha1.MachineShape{CPU: cpu, Memory: resource.MustParse(memory)}
	if disk != "" {
		m.Disk = ptr.To(resource.MustParse(disk))
	}
	return m
}

func TestShapeOf(t *testing.T) {
	for name, c := range map[string]struct {
		memory, disk string
		want         provider.Shape
		err          string
	}{
		"binary units":                        {"4Gi", "", provider.Shape{CPUs: 2, MemoryMiB: 4096}, ""},
		"decimal units are rounded up":        {"4G", "20G", provider.Shape{CPUs: 2, MemoryMiB: 3815, DiskGB: 20}, ""},
		"a binary disk is rounded up":         {"4Gi", "20Gi", provider.Shape{CPUs: 2, MemoryMiB: 4096, DiskGB: 22}, ""},
		"a byte more is a unit more":          {"4294967297", "20000000001", provider.Shape{CPUs: 2, MemoryMiB: 4097, DiskGB: 21}, ""},
		"the least":                           {"1", "1", provider.Shape{CPUs: 2, MemoryMiB: 1, DiskGB: 1}, ""},
		"parts of a byte":                     {"1.3Gi", "1.3Gi", provider.Shape{CPUs: 2, MemoryMiB: 1332, DiskGB: 2}, ""},
		"thousandths of bytes":                {"1500m", "", provider.Shape{CPUs: 2, MemoryMiB: 1}, ""},
		"no memory":                           {"0", "", provider.Shape{}, "memory: write how much, for example 4Gi"},
		"no disk is the provider's choice":    {"4Gi", "0", provider.Shape{CPUs: 2, MemoryMiB: 4096}, ""},
		"less than nothing":                   {"-4Gi", "", provider.Shape{}, "memory: -4Gi is less than nothing"},
		"far less than nothing":               {"-1e30", "", provider.Shape{}, "memory: -1e30 is less than nothing"},
		"a disk less than nothing":            {"4Gi", "-1", provider.Shape{}, "disk: -1 is less than nothing"},
		"more than fits into a number":        {"9223372036854775808", "", provider.Shape{}, "memory: 9223372036854775808 is more than any machine has"},
		"an exponent":                         {"4e9", "", provider.Shape{}, "memory: 4e9 has an exponent; write it with a unit, for example 4Gi"},
		"an exponent that nobody can count":   {"1e2000000001", "", provider.Shape{}, "memory: 1e2000000001 has an exponent; write it with a unit, for example 4Gi"},
		"a disk with one":                     {"4Gi", "1E2000000001", provider.Shape{}, "disk: 1E2000000001 has an exponent; write it with a unit, for example 4Gi"},
		"as much as may be":                   {"64Ti", "", provider.Shape{CPUs: 2, MemoryMiB: 64 << 20}, ""},
		"more than that":                      {"65Ti", "", provider.Shape{}, "memory: 65Ti is more than any machine has"},
		"the largest number":                  {"9223372036854775807", "", provider.Shape{}, "memory: 9223372036854775807 is more than any machine has"},
		"a disk of more than any machine has": {"4Gi", "2E", provider.Shape{}, "disk: 2E is more than any machine has"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := provider.ShapeOf(*shape(2, c.memory, c.disk))
			if c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Errorf("%v, want %s", err, c.err)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("%+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

func TestPortable(t *testing.T) {
	for name, c := range map[string]struct {
		give v1alpha1.MachineSelection
		want bool
	}{
		"nothing":              {v1alpha1.MachineSelection{}, true},
		"a portable name":      {v1alpha1.MachineSelection{MachineType: "SCS-2V-4"}, true},
		"a shape":              {v1alpha1.MachineSelection{Machine: shape(1, "1Gi", "")}, true},
		"a name of a provider": {v1alpha1.MachineSelection{MachineType: "m1.large"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := provider.IsPortable(c.give); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}

// types are in no order: that of a cloud's list must not matter.
func types() []v1alpha1.MachineType {
	return []v1alpha1.MachineType{
		{Name: "huge", Portable: "SCS-16V-64", CPU: 16, MemoryMiB: 65536, DiskGB: 100},
		{Name: "twin-b", CPU: 4, MemoryMiB: 8192, DiskGB: 50},
		{Name: "twin-a", CPU: 4, MemoryMiB: 8192, DiskGB: 50},
		{Name: "small", Portable: "SCS-1V-2", CPU: 1, MemoryMiB: 2048, DiskGB: 10},
		{Name: "volume", CPU: 8, MemoryMiB: 8192},
		{Name: "memory", Portable: "SCS-4V-8", CPU: 4, MemoryMiB: 16384, DiskGB: 50},
	}
}

func TestChoose(t *testing.T) {
	const choices = "choose from huge, twin-b, twin-a, small, volume, memory, or write a portable name, for example SCS-2V-4"
	const largest = "; its largest is huge with 16 CPUs and 65536 MiB of memory"
	for name, c := range map[string]struct {
		asked v1alpha1.MachineSelection
		any   bool
		want  string
		err   string
	}{
		"nothing is asked for":                        {asked: v1alpha1.MachineSelection{}},
		"the provider's own name":                     {asked: v1alpha1.MachineSelection{MachineType: "memory"}, want: "memory"},
		"what it calls so by the standard":            {asked: v1alpha1.MachineSelection{MachineType: "SCS-4V-8"}, want: "memory"},
		"the smallest that has a portable name's all": {asked: v1alpha1.MachineSelection{MachineType: "SCS-2V-4"}, want: "twin-a"},
		"a disk that a portable name has":             {asked: v1alpha1.MachineSelection{MachineType: "SCS-1V-2-20"}, want: "twin-a"},
		"the smallest that has all of a shape":        {asked: v1alpha1.MachineSelection{Machine: shape(1, "2Gi", "")}, want: "small"},
		"of two alike, always the same":               {asked: v1alpha1.MachineSelection{Machine: shape(2, "4Gi", "50G")}, want: "twin-a"},
		"a MiB more is too much for it":               {asked: v1alpha1.MachineSelection{Machine: shape(4, "8193Mi", "")}, want: "memory"},
		"a CPU more is too much for it":               {asked: v1alpha1.MachineSelection{Machine: shape(5, "1Gi", "")}, want: "volume"},
		"a GB of disk more is too much for it":        {asked: v1alpha1.MachineSelection{Machine: shape(1, "1Gi", "11G")}, want: "twin-a"},
		"one without a disk boots from any":           {asked: v1alpha1.MachineSelection{Machine: shape(1, "1Gi", "99999G")}, want: "volume"},
		"more than there is": {asked: v1alpha1.MachineSelection{Machine: shape(17, "1Gi", "")},
			err: "p has no machine with 17 CPUs and 1024 MiB of memory" + largest},
		"more than there is, with a disk": {asked: v1alpha1.MachineSelection{Machine: shape(17, "1Gi", "5G")},
			err: "p has no machine with 17 CPUs, 1024 MiB of memory and 5 GB of disk" + largest},
		"a shape that is none": {asked: v1alpha1.MachineSelection{Machine: shape(1, "0", "")}, any: true,
			err: "memory: write how much, for example 4Gi"},
		"another's name": {
			asked: v1alpha1.MachineSelection{MachineType: "m1.large"}, any: true,
			err: `p has no machine type "m1.large"; choose from huge, twin-b, twin-a, small, volume, memory, or write a portable name, for example SCS-2V-4`,
		},
		"a GPU, which no size stands for": {
			asked: v1alpha1.MachineSelection{MachineType: "SCS-4V-8_GNa-14"}, any: true,
			err: `p has no machine type "SCS-4V-8_GNa-14", and no other has that GPU for certain; ` + choices,
		},
		"InfiniBand": {asked: v1alpha1.MachineSelection{MachineType: "SCS-4V-8_ib"}, any: true,
			err: `p has no machine type "SCS-4V-8_ib", and no other has InfiniBand for certain; ` + choices},
		"machines within": {asked: v1alpha1.MachineSelection{MachineType: "SCS-4V-8_hwv"}, any: true,
			err: `p has no machine type "SCS-4V-8_hwv", and no other has virtual machines within it for certain; ` + choices},
		"bare metal": {asked: v1alpha1.MachineSelection{MachineType: "SCS-4C-8_bms"}, any: true,
			err: `p has no machine type "SCS-4C-8_bms", and no other has no hypervisor for certain; ` + choices},
		"what it is made of is no matter": {asked: v1alpha1.MachineSelection{MachineType: "SCS-4V-16_kvm_z3"}, want: "memory"},
		"CPUs of one's own, and what is known to share them is no such": {asked: v1alpha1.MachineSelection{MachineType: "SCS-4C-16"},
			err: `p has no machine type "SCS-4C-16": its machines of that size share their CPUs; ` + choices},
		"CPUs of one's own, and nobody knows": {asked: v1alpha1.MachineSelection{MachineType: "SCS-4T-8"}, want: "twin-a"},
		"CPUs that are shared by more":        {asked: v1alpha1.MachineSelection{MachineType: "SCS-1L-1"}, want: "small"},
		"any shape: what fits is taken first": {asked: v1alpha1.MachineSelection{Machine: shape(1, "1Gi", "")}, any: true, want: "small"},
		"any shape: a portable name stays":    {asked: v1alpha1.MachineSelection{MachineType: "SCS-32V-64"}, any: true, want: "SCS-32V-64"},
		"any shape: it gets a name": {asked: v1alpha1.MachineSelection{Machine: shape(32, "64Gi", "")}, any: true,
			want: "SCS-32V-64"},
		"any shape: memory in halves": {asked: v1alpha1.MachineSelection{Machine: shape(32, "4608Mi", "")}, any: true,
			want: "SCS-32V-4.5"},
		"any shape: memory between them": {asked: v1alpha1.MachineSelection{Machine: shape(32, "4097Mi", "")}, any: true,
			err: "memory: machines have whole or half GiB; write 4096Mi or 4608Mi"},
		"any shape: with its disk": {asked: v1alpha1.MachineSelection{Machine: shape(32, "4Gi", "20Gi")}, any: true,
			want: "SCS-32V-4-22"},
	} {
		t.Run(name, func(t *testing.T) {
			d := provider.Description{Name: "p", MachineTypes: types(), AnyShape: c.any}
			got, err := d.ChooseMachineType(c.asked)
			if got != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
				t.Errorf("%q, %v; want %q, %s", got, err, c.want, c.err)
			}
			slices.Reverse(d.MachineTypes) // the order in which a cloud lists its types says nothing
			if again, _ := d.ChooseMachineType(c.asked); again != got {
				t.Errorf("%q, and in another order %q", got, again)
			}
		})
	}
}

func TestChooseDoesNotChangeTheDescription(t *testing.T) {
	d := provider.Description{Name: "p", MachineTypes: types()}
	if _, err := d.ChooseMachineType(v1alpha1.MachineSelection{Machine: shape(4, "1Gi", "")}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(d.MachineTypes, types()) {
		t.Errorf("%+v", d.MachineTypes)
	}
}

func TestAProviderWithoutTypes(t *testing.T) {
	d := provider.Description{Name: "p"}
	for name, c := range map[string]struct {
		asked v1alpha1.MachineSelection
		want  string
	}{
		"a name":  {v1alpha1.MachineSelection{MachineType: "m1.large"}, `p has no machine type "m1.large"; write a portable name, for example SCS-2V-4`},
		"a shape": {v1alpha1.MachineSelection{Machine: shape(1, "1Gi", "")}, "p has no machine with 1 CPUs and 1024 MiB of memory; it has none at all"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := d.ChooseMachineType(c.asked); err == nil || err.Error() != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func TestManyTypesAreNotAllTold(t *testing.T) {
	d := provider.Description{Name: "p"}
	for i := range 12 {
		d.MachineTypes = append(d.MachineTypes, v1alpha1.MachineType{Name: fmt.Sprintf("t%d", i)})
	}
	_, err := d.ChooseMachineType(v1alpha1.MachineSelection{MachineType: "x"})
	if err == nil || !strings.Contains(err.Error(), "t8, t9, and 2 more, or") || strings.Contains(err.Error(), "t10") {
		t.Error(err)
	}
}

func TestStack(t *testing.T) {
	for want, d := range map[string]provider.Description{"p": {Name: "p"}, "q": {Name: "p", StackProvider: "q"}} {
		if got := d.StackProviderName(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
