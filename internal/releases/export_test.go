package releases

// Free pretends that so many bytes are free on a disk of 100 GiB.
func (l *Library) Free(bytes uint64) {
	l.disk.space = func(string) (space, bool) { return space{free: bytes, total: 100 << 30}, true }
}

// PerHour makes the share of a namespace another.
func (l *Library) PerHour(bytes int64) { l.hourly.most = bytes }
