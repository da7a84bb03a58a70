package rest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/polder-kaas/polder/config/crd"
)

// Objects of the plane, as they are answered with. Their schemas are those of the plane.
type (
	clusterObject  map[string]any
	tenantObject   map[string]any
	providerObject map[string]any
	stackObject    map[string]any
	releaseObject  map[string]any
)

// Schema is that of the kind.
func (clusterObject) Schema(r huma.Registry) *huma.Schema { return kindSchema(r, "WorkloadCluster") }

// Schema is that of the kind.
func (tenantObject) Schema(r huma.Registry) *huma.Schema { return kindSchema(r, "Tenant") }

// Schema is that of the kind.
func (providerObject) Schema(r huma.Registry) *huma.Schema { return kindSchema(r, "Provider") }

// Schema is that of the kind.
func (stackObject) Schema(r huma.Registry) *huma.Schema { return kindSchema(r, "ClusterStack") }

// Schema is that of the kind.
func (releaseObject) Schema(r huma.Registry) *huma.Schema {
	return kindSchema(r, "ClusterStackRelease")
}

const schemaPrefix = "#/components/schemas/"

// schemaNames are names in the document where those that huma makes of Go's are not for people.
var schemaNames = map[string]string{ //nolint:gosec // names, of which one has a token in it
	"AuditOutputBody": "AuditEventList", "Info": "Version",
	"Create-robot-tokenRequest": "RobotTokenRequest", "Put-robotRequest": "RobotRequest",
}

var listBodyPattern = regexp.MustCompile(`^List(.+?)(Object)?Body$`)

// nameSchema names the schema of a type; generated clients have its name.
func nameSchema(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	if m := listBodyPattern.FindStringSubmatch(name); m != nil {
		return m[1] + "List"
	}
	return cmp.Or(schemaNames[name], name)
}

// kindSchema puts the schema of a kind into the document, once, and returns a reference to it. There is none without
// one: the kinds are those of this program.
func kindSchema(r huma.Registry, kind string) *huma.Schema {
	if r.Map()[kind] == nil {
		s, err := readKindSchema(kind)
		if err != nil {
			panic(err) //nolint:forbidigo // each test of the package would
		}
		r.Map()[kind] = s
		r.Map()[metadataSchemaName] = metadataSchema()
	}
	return &huma.Schema{Ref: schemaPrefix + kind}
}

var definitions = sync.OnceValues(crd.All)

// readKindSchema takes the schema of a kind out of its definition. What only Kubernetes understands in it is left out.
func readKindSchema(kind string) (*huma.Schema, error) {
	all, err := definitions()
	if err != nil {
		return nil, err
	}
	for _, d := range all {
		if d.Spec.Names.Kind != kind {
			continue
		}
		s, err := convertSchema(d.Spec.Versions[0].Schema.OpenAPIV3Schema)
		if err != nil {
			return nil, err
		}
		s.Properties["metadata"] = &huma.Schema{Ref: schemaPrefix + metadataSchemaName}
		if status := s.Properties["status"]; status != nil {
			status.ReadOnly = true
		}
		return s, nil
	}
	return nil, fmt.Errorf("there is no kind %s", kind)
}

// convertSchema relies on both being JSON Schema: names are the same but for their case, which does not count.
func convertSchema(in *apiextensionsv1.JSONSchemaProps) (*huma.Schema, error) {
	b, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	s := &huma.Schema{}
	return s, json.Unmarshal(b, s)
}

const metadataSchemaName = "ObjectMeta"

// metadataSchema is what is answered and taken of an object's metadata.
func metadataSchema() *huma.Schema {
	text := func(description string, readOnly bool) *huma.Schema {
		return &huma.Schema{Type: huma.TypeString, Description: description, ReadOnly: readOnly}
	}
	texts := func(description string) *huma.Schema {
		return &huma.Schema{
			Type: huma.TypeObject, Description: description, AdditionalProperties: &huma.Schema{Type: huma.TypeString},
		}
	}
	at := func(description string) *huma.Schema {
		return &huma.Schema{Type: huma.TypeString, Format: "date-time", Description: description, ReadOnly: true}
	}
	return &huma.Schema{Type: huma.TypeObject, Description: "Who the object is.", Properties: map[string]*huma.Schema{
		"name":              text("name of the object, which never changes.", false),
		"labels":            texts("labels of the object."),
		"annotations":       texts("annotations of the object."),
		"namespace":         text("namespace of a release: of which tenant, or of all.", true),
		"uid":               text("uid tells it from others of its name, before and after.", true),
		"resourceVersion":   text("resourceVersion changes with each change. It is also the ETag.", true),
		"generation":        {Type: huma.TypeInteger, Format: "int64", ReadOnly: true, Description: "generation counts changes of spec."},
		"creationTimestamp": at("creationTimestamp is when it was made."),
		"deletionTimestamp": at("deletionTimestamp is since when it is being deleted."),
	}}
}

// serveDocuments serves the OpenAPI document, of version 3.1 and of 3.0, to everybody.
func (a *API) serveDocuments() error {
	now, err := json.Marshal(a.huma.OpenAPI())
	if err != nil {
		return err
	}
	old, err := a.huma.OpenAPI().Downgrade()
	if err != nil {
		return err
	}
	for path, document := range map[string][]byte{"/openapi.json": now, "/openapi-3.0.json": old} {
		a.mux.HandleFunc("GET "+Prefix+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/vnd.oai.openapi+json")
			w.Header().Set("Cache-Control", "public, max-age=300")
			_, _ = w.Write(document) // the client may be gone
		})
	}
	return nil
}
