package datadir

import (
	"os"
	"path/filepath"
)

// Default is where a plane keeps its data unless told otherwise: $POLDER_DATA_DIR, or the
// polder directory below the user's XDG data home. It is empty if there is no home either.
func Default() string {
	if d := os.Getenv("POLDER_DATA_DIR"); d != "" {
		return d
	}
	if d := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "polder")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".local", "share", "polder")
}
