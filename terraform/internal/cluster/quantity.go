package cluster

import (
	"context"
	"fmt"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/polder-kaas/polder/terraform/internal/connect"
)

// quantityType is an amount of memory or disk. The plane may write it otherwise than the configuration does, which is
// no difference: 4096Mi is 4Gi.
type quantityType struct{ basetypes.StringType }

// quantity is a value of quantityType.
type quantity struct{ basetypes.StringValue }

var (
	_ basetypes.StringTypable                    = quantityType{}
	_ basetypes.StringValuableWithSemanticEquals = quantity{}
	_ xattr.ValidateableAttribute                = quantity{}
)

// quantityPattern is that of the plane's definition. Amounts with exponents are refused before they are read:
// 1e2000000000 takes all memory there is.
var quantityPattern = regexp.MustCompile(`^[0-9]{1,24}(\.[0-9]{1,9})?([KMGTPE]i|[numkMGTPE])?$`)

func newQuantity(text string) quantity { return quantity{basetypes.NewStringValue(text)} }
func nullQuantity() quantity           { return quantity{basetypes.NewStringNull()} }

// parse returns the amount.
func (v quantity) parse() (resource.Quantity, error) {
	if !quantityPattern.MatchString(v.ValueString()) {
		return resource.Quantity{}, fmt.Errorf("%q is no amount; write it with a unit, as 4Gi or 20G, or as bytes", v.ValueString())
	}
	return resource.ParseQuantity(v.ValueString())
}

// Equal says whether two values are written alike.
func (t quantityType) Equal(o attr.Type) bool {
	other, ok := o.(quantityType)
	return ok && t.StringType.Equal(other.StringType)
}

// String names the type.
func (t quantityType) String() string { return "quantity" }

// ValueType is the type of values.
func (t quantityType) ValueType(context.Context) attr.Value { return quantity{} }

// ValueFromString makes a value.
func (t quantityType) ValueFromString(_ context.Context, s basetypes.StringValue) (basetypes.StringValuable,
	diag.Diagnostics) {
	return quantity{s}, nil
}

// ValueFromTerraform makes a value.
func (t quantityType) ValueFromTerraform(ctx context.Context, in tftypes.Value) (attr.Value, error) {
	v, err := t.StringType.ValueFromTerraform(ctx, in)
	if err != nil {
		return nil, err
	}
	s, ok := v.(basetypes.StringValue)
	if !ok {
		return nil, fmt.Errorf("a quantity is a string, not %T", v)
	}
	return quantity{s}, nil
}

// Type is quantityType.
func (v quantity) Type(context.Context) attr.Type { return quantityType{} }

// Equal says whether two values are written alike.
func (v quantity) Equal(o attr.Value) bool {
	other, ok := o.(quantity)
	return ok && v.StringValue.Equal(other.StringValue)
}

// StringSemanticEquals says whether two values are the same amount.
func (v quantity) StringSemanticEquals(_ context.Context, o basetypes.StringValuable) (bool, diag.Diagnostics) {
	other, ok := o.(quantity)
	if !ok {
		return false, nil
	}
	a, err := v.parse()
	b, err2 := other.parse()
	return err == nil && err2 == nil && a.Cmp(b) == 0, nil
}

// ValidateAttribute refuses what is no amount.
func (v quantity) ValidateAttribute(_ context.Context, req xattr.ValidateAttributeRequest,
	resp *xattr.ValidateAttributeResponse) {
	if v.IsNull() || v.IsUnknown() {
		return
	}
	if _, err := v.parse(); err != nil {
		resp.Diagnostics.AddAttributeError(connect.RootOf(req.Path), "This is no amount", req.Path.String()+": "+err.Error())
	}
}
