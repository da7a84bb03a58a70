package kubelet

import (
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// ManifestWatcher tells the machines of a host that a file of theirs has changed. There is one for all of them: a user
// may have only so many watchers (fs.inotify.max_user_instances is 128 on most computers), editors and browsers
// included.
type ManifestWatcher struct {
	watcher *fsnotify.Watcher // nil: there are no more of them
	done    chan struct{}

	mu   sync.Mutex
	dirs map[string]chan struct{} // has an element if something changed
}

// NewManifestWatcher starts a watcher; Close must be called. The error says that nothing is noticed until it is looked
// for; the watcher can be used all the same.
func NewManifestWatcher() (*ManifestWatcher, error) {
	w := &ManifestWatcher{dirs: map[string]chan struct{}{}, done: make(chan struct{})}
	var err error
	if w.watcher, err = fsnotify.NewWatcher(); err != nil {
		w.watcher = nil
		close(w.done)
		return w, err
	}
	go w.run(w.watcher)
	return w, nil
}

func (w *ManifestWatcher) run(from *fsnotify.Watcher) {
	defer close(w.done)
	for {
		select {
		case e, ok := <-from.Events:
			if !ok {
				return
			}
			w.notify(e.Name, filepath.Dir(e.Name))
		case _, ok := <-from.Errors: // events were lost
			if !ok {
				return
			}
			w.mu.Lock()
			all := slices.Collect(maps.Keys(w.dirs))
			w.mu.Unlock()
			w.notify(all...)
		}
	}
}

func (w *ManifestWatcher) notify(dirs ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range dirs {
		select {
		case w.dirs[d] <- struct{}{}:
		default: // nobody watches it, or there is a notice already
		}
	}
}

// Watch returns a channel that tells of changes in a directory, and how to end that. Without a watcher it never does.
func (w *ManifestWatcher) Watch(dir string) (<-chan struct{}, func(), error) {
	if w == nil || w.watcher == nil {
		return nil, func() {}, nil
	}
	changes := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dirs[dir] = changes
	if err := w.watcher.Add(dir); err != nil {
		delete(w.dirs, dir)
		return nil, func() {}, err
	}
	return changes, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.dirs[dir] == changes {
			delete(w.dirs, dir)
			_ = w.watcher.Remove(dir) // it may be gone
		}
	}, nil
}

// Close ends the watcher.
func (w *ManifestWatcher) Close() {
	if w.watcher != nil {
		_ = w.watcher.Close() // nothing to lose
	}
	<-w.done
}
