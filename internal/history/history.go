// Package history keeps what is known of an application when it is gone: a report that its ApplicationMaster writes now and then and
// at its end, beside those of other applications. A Keeper writes it; a Shelf is where reports are: a folder of this host, or of HDFS.
package history

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
)

// Format is that of reports which this version writes.
const Format = 1

// Report is what is known of an application. Those fields that a list of reports shows come first, so that a part of the file is enough for one.
type Report struct {
	Format   int       `json:"format"`
	App      string    `json:"app"`
	Job      string    `json:"job"`
	State    string    `json:"state"`            // of the job when it was written
	Complete bool      `json:"complete"`         // nothing came after it
	Ending   string    `json:"ending,omitempty"` // why the ApplicationMaster was about to end before the job was over
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended,omitzero"`
	Written  time.Time `json:"written"`
	Attempt  uint32    `json:"attempt"` // of the ApplicationMaster, from 0
	User     string    `json:"user,omitempty"`
	Queue    string    `json:"queue,omitempty"`
	Target   string    `json:"target"`
	Version  string    `json:"version"` // of Heddle

	Earlier []Attempt `json:"earlier,omitempty"` // of the ApplicationMaster, oldest first

	Options  []Option            `json:"options"`
	Snapshot *appmaster.Snapshot `json:"snapshot"` // graph, counters, lag, failures, containers
}

// Attempt is what the report of an earlier attempt of the ApplicationMaster said last.
type Attempt struct {
	Attempt uint32           `json:"attempt"`
	State   string           `json:"state"`
	Ending  string           `json:"ending,omitempty"`
	Started time.Time        `json:"started"`
	Written time.Time        `json:"written"`
	Cause   *appmaster.Cause `json:"cause,omitempty"`
}

func (r *Report) sum() Attempt {
	a := Attempt{Attempt: r.Attempt, State: r.State, Ending: r.Ending, Started: r.Started, Written: r.Written}
	if r.Snapshot != nil {
		a.Cause = r.Snapshot.Cause
	}
	return a
}

// Option is an option of the configuration.
type Option struct {
	Name   string `json:"name"`
	Value  string `json:"value"` // masked if it is a secret
	Origin string `json:"origin"`
}

// suffix ends the name of a report's file, after the application's id.
const suffix = ".json"

// Name is the name of an application's report in its folder.
func Name(app string) string { return app + suffix }

// appOf is the application that a file of a folder of reports is about; "" for other files.
func appOf(name string) string {
	app, ok := strings.CutSuffix(path.Base(name), suffix)
	if !ok || strings.HasPrefix(app, ".") {
		return ""
	}
	return app
}

// Decode reads a report.
func Decode(data []byte) (*Report, error) {
	var r Report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("cannot read the report: %w", err)
	}
	switch {
	case r.Format > Format:
		return nil, fmt.Errorf("cannot read the report of %q: it has the format %d of a later version of Heddle, which is %q", r.App, r.Format, r.Version)
	case r.Format < 1 || r.App == "":
		return nil, errors.New("cannot read the report: it is none")
	}
	return &r, nil
}

// Entry is a report on a shelf.
type Entry struct {
	App      string
	Path     string
	Modified time.Time
	Size     int64
}

// Limits say what of a shelf is kept.
type Limits struct {
	Age   time.Duration // 0: of any age
	Count int           // the newest; 0: none
}

// Excess are the entries that are beyond the limits: too old, or older than enough others.
func Excess(entries []Entry, now time.Time, l Limits) []Entry {
	sorted := slices.Clone(entries)
	slices.SortFunc(sorted, func(a, b Entry) int { return cmp.Or(b.Modified.Compare(a.Modified), cmp.Compare(b.App, a.App)) })
	for i, e := range sorted {
		if i >= l.Count || l.Age > 0 && now.Sub(e.Modified) > l.Age {
			return sorted[i:]
		}
	}
	return nil
}
