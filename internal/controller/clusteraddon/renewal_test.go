package clusteraddon

import (
	"testing"
	"time"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/render"
)

func TestNeedsCertificateRenewal(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	after := func(days int) time.Time { return begin.AddDate(0, 0, days) }
	for name, c := range map[string]struct {
		renewed, expires, now int
		want                  bool
	}{
		"young":                              {expires: 90, now: 59},
		"two thirds are over":                {expires: 90, now: 61, want: true},
		"it has ended":                       {expires: 90, now: 91, want: true},
		"renewed, and young":                 {renewed: 60, expires: 150, now: 119},
		"renewed, and two thirds are over":   {renewed: 60, expires: 150, now: 121, want: true},
		"there is none, whatever the record": {now: 4000},
	} {
		t.Run(name, func(t *testing.T) {
			rec := render.Record{Time: begin}
			if c.renewed > 0 {
				rec.Renewed = after(c.renewed)
			}
			stages := []stack.RenderedStage{{}, {}}
			if c.expires > 0 {
				e := after(c.expires)
				stages[1].Expires = &e
			}
			if got := needsCertificateRenewal(rec, stages, after(c.now)); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
