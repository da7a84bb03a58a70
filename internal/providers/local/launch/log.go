package launch

import (
	"os"
	"strings"
)

// maxLogSize is how large a host's log may be before a new one is begun at the host's next start.
const maxLogSize = 10 << 20

func openLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxLogSize {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

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
