package releases

// SetFreeSpace pretends that so many bytes are free on a disk of 100 GiB.
func (l *Library) SetFreeSpace(bytes uint64) {
	l.disk.statSpace = func(string) (diskSpace, bool) { return diskSpace{free: bytes, total: 100 << 30}, true }
}

// SetBytesPerHour sets the quota of each namespace.
func (l *Library) SetBytesPerHour(bytes int64) { l.downloadQuota.bytesPerHour = bytes }
