//go:build fault && linux

package plane

import _ "github.com/polder-kaas/polder/internal/program/clockfault" // the clock can jump
