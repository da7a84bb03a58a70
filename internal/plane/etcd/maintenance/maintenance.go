// Package maintenance has what polderd and polder tell each other about the maintenance of the store.
package maintenance

import "time"

// Path is where an administrator asks for maintenance, with POST. The answer is a Result.
const Path = "/maintenance/store"

// Sizes are those of the database, in bytes.
type Sizes struct {
	File  int64 `json:"file"`  // on disk; this counts for the limit
	InUse int64 `json:"inUse"` // of it
}

// Result is what a maintenance did.
type Result struct {
	Before   Sizes         `json:"before"`
	After    Sizes         `json:"after"`
	Limit    int64         `json:"limit"`             // of Sizes.File
	Blocked  time.Duration `json:"blocked"`           // how long nothing could be read or written
	Writable bool          `json:"writable"`          // the store takes changes now
	Problem  string        `json:"problem,omitempty"` // why it does not
}
