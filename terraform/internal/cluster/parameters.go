package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/big"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// numberPrecision is that of Terraform's own numbers.
const numberPrecision = 512

// expandParameters makes JSON of parameters of any types. Null is as if left out.
func expandParameters(in types.Dynamic) (map[string]apiextensionsv1.JSON, error) {
	if in.IsNull() || in.IsUnderlyingValueNull() || in.IsUnknown() || in.IsUnderlyingValueUnknown() {
		return nil, nil
	}
	v, err := decodeAttribute(in.UnderlyingValue())
	if err != nil {
		return nil, err
	}
	all, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("parameters are an object, as { name = value }")
	}
	out := map[string]apiextensionsv1.JSON{}
	for name, v := range all {
		b, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("writing parameter %s: %w", name, err)
		}
		out[name] = apiextensionsv1.JSON{Raw: b}
	}
	return out, nil
}

// flattenParameters makes a value of parameters. As long as it means the same, it is the one that was there, whatever
// its types: a list and a tuple are alike in JSON.
func flattenParameters(prior types.Dynamic, in map[string]apiextensionsv1.JSON) (types.Dynamic, error) {
	was, err := expandParameters(prior)
	if err != nil {
		return prior, err
	}
	if len(was) == 0 && len(in) == 0 {
		return prior, nil
	}
	now, err := encodeAll(in)
	if err != nil {
		return prior, err
	}
	before, err := encodeAll(was)
	if err != nil || !before.Equal(now) {
		return types.DynamicValue(now), err
	}
	return prior, nil
}

func encodeAll(in map[string]apiextensionsv1.JSON) (attr.Value, error) {
	all := map[string]any{}
	for name, j := range in {
		d := json.NewDecoder(bytes.NewReader(j.Raw))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			return nil, fmt.Errorf("reading parameter %s: %w", name, err)
		}
		all[name] = v
	}
	return encodeAttribute(all)
}

// decodeAttribute makes of a value what encoding/json knows.
func decodeAttribute(in attr.Value) (any, error) {
	if in.IsNull() {
		return nil, nil
	}
	if in.IsUnknown() {
		return nil, fmt.Errorf("a parameter is not known yet")
	}
	switch v := in.(type) {
	case basetypes.StringValue:
		return v.ValueString(), nil
	case basetypes.BoolValue:
		return v.ValueBool(), nil
	case basetypes.NumberValue:
		return numberText(v.ValueBigFloat()), nil
	case basetypes.DynamicValue:
		return decodeAttribute(v.UnderlyingValue())
	case basetypes.ListValue:
		return decodeList(v.Elements())
	case basetypes.SetValue:
		return decodeList(v.Elements())
	case basetypes.TupleValue:
		return decodeList(v.Elements())
	case basetypes.MapValue:
		return decodeMap(v.Elements())
	case basetypes.ObjectValue:
		return decodeMap(v.Attributes())
	}
	return nil, fmt.Errorf("a parameter cannot be a %s", in.Type(context.Background())) //nolint:forbidigo // no request is made
}

func numberText(f *big.Float) json.Number {
	if f.IsInt() {
		return json.Number(f.Text('f', 0))
	}
	return json.Number(f.Text('g', -1))
}

func decodeList(in []attr.Value) (any, error) {
	out := make([]any, len(in))
	for i := range in {
		v, err := decodeAttribute(in[i])
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func decodeMap(in map[string]attr.Value) (any, error) {
	out := map[string]any{}
	for name, a := range in {
		v, err := decodeAttribute(a)
		if err != nil {
			return nil, err
		}
		if v != nil {
			out[name] = v
		}
	}
	return out, nil
}

// encodeAttribute makes a value of what encoding/json has read.
func encodeAttribute(in any) (attr.Value, error) {
	switch v := in.(type) {
	case nil:
		return types.DynamicNull(), nil
	case string:
		return types.StringValue(v), nil
	case bool:
		return types.BoolValue(v), nil
	case json.Number:
		f, _, err := big.ParseFloat(v.String(), 10, numberPrecision, big.ToNearestEven)
		if err != nil {
			return nil, fmt.Errorf("reading a number: %w", err)
		}
		return types.NumberValue(f), nil
	case []any:
		return encodeTuple(v)
	case map[string]any:
		return encodeObject(v)
	}
	return nil, fmt.Errorf("a parameter cannot be a %T", in)
}

func encodeTuple(in []any) (attr.Value, error) {
	values, ts := make([]attr.Value, len(in)), make([]attr.Type, len(in))
	for i := range in {
		v, err := encodeAttribute(in[i])
		if err != nil {
			return nil, err
		}
		values[i], ts[i] = v, v.Type(context.Background()) //nolint:forbidigo // no request is made
	}
	out, diags := types.TupleValue(ts, values)
	return out, asError(diags)
}

func encodeObject(in map[string]any) (attr.Value, error) {
	values, ts := map[string]attr.Value{}, map[string]attr.Type{}
	for name := range in {
		v, err := encodeAttribute(in[name])
		if err != nil {
			return nil, err
		}
		values[name], ts[name] = v, v.Type(context.Background()) //nolint:forbidigo // no request is made
	}
	out, diags := types.ObjectValue(ts, values)
	return out, asError(diags)
}
