package launch

import (
	"os"
	"strings"

	"github.com/polder-kaas/polder/internal/files/logfile"
)

// openLog opens a host's log for the start of the host, which keeps it within its bounds from then on.
func openLog(path string) (*os.File, error) { return logfile.File{Path: path}.Open() }

// maxLogTail is how much of the end of a log is looked at for last words.
const maxLogTail = 4 << 10

// LogTail returns the last three lines of the host's log in one.
func (l Launcher) LogTail(uid string) string {
	f, err := os.Open(l.Dir(uid).LogFile())
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // read only
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	b := make([]byte, min(info.Size(), maxLogTail))
	n, _ := f.ReadAt(b, info.Size()-int64(len(b))) // as much as there is
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(b[:n]), "")), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "; ")
}
