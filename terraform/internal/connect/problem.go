package connect

import (
	"errors"
	"net/http"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/polder-kaas/polder/client"
)

// Explain says what the plane has refused, or why it could not be asked, in its words. Each field that is wrong gets a
// diagnostic of its own; locate returns which attribute has it.
func Explain(summary string, err error, locate func(location string) (path.Path, bool)) diag.Diagnostics {
	var all diag.Diagnostics
	var p *client.Problem
	if !errors.As(err, &p) {
		all.AddError(summary, err.Error())
		return all
	}
	for _, e := range p.Errors {
		switch at, ok := locate(e.Location); {
		case ok:
			all.AddAttributeError(RootOf(at), summary, at.String()+": "+e.Message)
		case e.Location != "":
			all.AddError(summary, e.Location+": "+e.Message)
		default:
			all.AddError(summary, e.Message)
		}
	}
	if len(p.Errors) == 0 {
		all.AddError(summary, p.Error())
	}
	return all
}

// RootOf is the attribute at the top that has another. Terraform shows the line of those only; what is in them must be
// said in words.
func RootOf(at path.Path) path.Path {
	for _, s := range at.Steps() {
		if name, ok := s.(path.PathStepAttributeName); ok {
			return path.Root(string(name))
		}
	}
	return at
}

// Refusal returns why a request was refused, or nil. What it did not get as an answer is one, too.
func Refusal(res *http.Response, body []byte, err error) error {
	if err != nil {
		return err
	}
	return client.ReadProblem(res, body)
}

// HasStatus says whether a request was refused with a status.
func HasStatus(err error, status int) bool {
	var p *client.Problem
	return errors.As(err, &p) && p.Status == int64(status)
}
