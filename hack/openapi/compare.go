package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// compare says what a document takes away from the one before it: anything that a program written for that could have
// relied on.
func compare(before, after []byte) ([]string, error) {
	var old, now map[string]any
	if err := json.Unmarshal(before, &old); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(after, &now); err != nil {
		return nil, err
	}
	c := &comparison{}
	for _, path := range keys(old["paths"]) {
		for _, method := range keys(child(old, "paths", path)) {
			c.operation(method+" "+path, child(old, "paths", path, method), child(now, "paths", path, method))
		}
	}
	for _, name := range keys(child(old, "components", "schemas")) {
		c.schema(name, child(old, "components", "schemas", name), child(now, "components", "schemas", name))
	}
	return c.taken, nil
}

type comparison struct{ taken []string }

func (c *comparison) say(format string, args ...any) {
	c.taken = append(c.taken, fmt.Sprintf(format, args...))
}

// child is what is found under some names, or nil.
func child(v any, names ...string) any {
	for _, n := range names {
		m, _ := v.(map[string]any)
		v = m[n]
	}
	return v
}

func keys(v any) []string {
	m, _ := v.(map[string]any)
	return slices.Sorted(maps.Keys(m))
}

func items(v any) []any {
	l, _ := v.([]any)
	return l
}

func (c *comparison) operation(where string, old, now any) {
	if now == nil {
		c.say("%s is gone", where)
		return
	}
	if child(old, "operationId") != child(now, "operationId") {
		c.say("%s has another operationId", where)
	}
	known := map[string]any{}
	for _, p := range items(child(now, "parameters")) {
		known[fmt.Sprint(child(p, "in"), " ", child(p, "name"))] = p
	}
	for _, p := range items(child(old, "parameters")) {
		name := fmt.Sprint(child(p, "in"), " ", child(p, "name"))
		if known[name] == nil {
			c.say("%s does not take %s any more", where, name)
			continue
		}
		if child(p, "required") != true && child(known[name], "required") == true {
			c.say("%s needs %s now", where, name)
		}
		c.schema(where+" "+name, child(p, "schema"), child(known[name], "schema"))
		delete(known, name)
	}
	for name, p := range known {
		if child(p, "required") == true {
			c.say("%s needs %s, which is new", where, name)
		}
	}
	c.content(where+" body", child(old, "requestBody", "content"), child(now, "requestBody", "content"))
	for _, code := range keys(child(old, "responses")) {
		if child(now, "responses", code) == nil {
			c.say("%s does not answer %s any more", where, code)
			continue
		}
		c.content(where+" "+code, child(old, "responses", code, "content"), child(now, "responses", code, "content"))
	}
}

func (c *comparison) content(where string, old, now any) {
	for _, t := range keys(old) {
		if child(now, t) == nil {
			c.say("%s is not of type %s any more", where, t)
			continue
		}
		c.schema(where, child(old, t, "schema"), child(now, t, "schema"))
	}
}

// limits are those of values: what was allowed stays allowed.
var limits = map[string]int{
	"maximum": 1, "maxLength": 1, "maxItems": 1, "maxProperties": 1,
	"minimum": -1, "minLength": -1, "minItems": -1, "minProperties": -1,
}

func (c *comparison) schema(where string, old, now any) {
	if old == nil {
		return
	}
	if now == nil {
		c.say("%s is gone", where)
		return
	}
	for _, same := range []string{"type", "$ref", "format", "pattern"} {
		if fmt.Sprint(child(old, same)) != fmt.Sprint(child(now, same)) {
			c.say("%s has another %s", where, same)
		}
	}
	for name, direction := range limits {
		was, limited := child(old, name).(float64)
		is, limits := child(now, name).(float64)
		if limits && (!limited || (is-was)*float64(direction) < 0) {
			c.say("%s has a narrower %s", where, name)
		}
	}
	for _, v := range items(child(old, "enum")) {
		if e := items(child(now, "enum")); e != nil && !slices.Contains(e, v) {
			c.say("%s may not be %v any more", where, v)
		}
	}
	if len(items(child(old, "enum"))) == 0 && len(items(child(now, "enum"))) > 0 {
		c.say("%s may only be some values now", where)
	}
	required := items(child(old, "required"))
	for _, r := range items(child(now, "required")) {
		if !slices.Contains(required, r) {
			c.say("%s.%v is needed now", where, r)
		}
	}
	for _, r := range required {
		if !slices.Contains(items(child(now, "required")), r) {
			c.say("%s.%v may be missing now", where, r)
		}
	}
	for _, p := range keys(child(old, "properties")) {
		c.schema(where+"."+p, child(old, "properties", p), child(now, "properties", p))
	}
	c.schema(where+"[]", child(old, "items"), child(now, "items"))
	if _, ok := child(old, "additionalProperties").(map[string]any); ok {
		c.schema(where+"{}", child(old, "additionalProperties"), child(now, "additionalProperties"))
	}
	if child(old, "additionalProperties") != false && child(now, "additionalProperties") == false {
		c.say("%s may not have further fields any more", where)
	}
}
