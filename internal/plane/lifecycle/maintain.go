package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/polder-kaas/polder/internal/plane/datadir"
	"github.com/polder-kaas/polder/internal/plane/etcd/maintenance"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// maxAnswer bounds what is read of an answer of a few lines.
const maxAnswer = 64 << 10

// Maintain has the running plane maintain its store.
func (p *Plane) Maintain(ctx context.Context, timeout time.Duration) (maintenance.Result, error) {
	var result maintenance.Result
	pid, err := datadir.Holder(p.dir)
	if err != nil {
		return result, err
	}
	if pid == 0 {
		return result, exit.Errorf(exit.NotReady, "no polderd runs on %s; start it with: polder up --data-dir %s", p.dir, p.dir)
	}
	res, err := p.send(ctx, http.MethodPost, maintenance.Path, timeout)
	if err != nil {
		return result, exit.Errorf(exit.Failure, "the plane in %s does not answer: %w; see: polder status --data-dir %s", p.dir,
			err, p.dir)
	}
	defer res.Body.Close() //nolint:errcheck // read only
	if res.StatusCode == http.StatusGatewayTimeout {
		return result, exit.Errorf(exit.Timeout, "the maintenance takes longer than a minute and goes on; see its end in %s",
			p.LogFile())
	}
	if res.StatusCode != http.StatusOK {
		words, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		return result, exit.Errorf(exit.Failure, "the store was not maintained: %s", strings.TrimSpace(string(words)))
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&result); err != nil {
		return result, fmt.Errorf("reading the answer of the plane: %w", err)
	}
	return result, nil
}
