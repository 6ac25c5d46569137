package flow

import (
	"fmt"
	"runtime"
	"strings"
)

// DataError is an error whose text shows what a record holds. The job's failure cause tells it, to those who may look at the job;
// logs, which travel further and are kept longer, get Logged in its place.
type DataError struct {
	Err    error
	Logged string // what is left without the record, and without what a function said of it
}

func (e *DataError) Error() string { return e.Err.Error() }
func (e *DataError) Unwrap() error { return e.Err }

// notLogged stands in logs for an author's or a format's own words at a record.
const notLogged = "failed at a record (the job's failure cause tells why, logs don't tell what records hold)"

// Logged is the text of err that may stand in a log: each DataError in it tells its Logged only.
func Logged(err error) string {
	text := err.Error()
	for _, d := range dataErrors(nil, err) {
		text = strings.ReplaceAll(text, d.Error(), d.Logged)
	}
	return text
}

// dataErrors appends the outermost DataErrors in the tree of err.
func dataErrors(list []*DataError, err error) []*DataError {
	if d, ok := err.(*DataError); ok {
		return append(list, d)
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			list = dataErrors(list, inner)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			list = dataErrors(list, inner)
		}
	}
	return list
}

// panicked is an error for a panic's value, which may hold anything; what the runtime says of itself holds no record.
func panicked(p any, site string) error {
	text := fmt.Sprintf("panic: %v%s", p, site)
	logged := "panic" + site
	switch e := p.(type) {
	case runtime.Error:
		text = "panic: " + e.Error() + site
		logged = text
	case error:
		text = "panic: " + e.Error() + site
	}
	return &DataError{errorText(text), logged}
}

type errorText string

func (e errorText) Error() string { return string(e) }
