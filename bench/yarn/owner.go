package main

import (
	"fmt"
	"os"
	"testing"
)

// owner stands in for the test that owns a cluster of package testbed. What that has no use for is not there.
type owner struct {
	testing.TB
	cleanups []func()
}

// failure is what the cluster's parts fail with.
type failure struct{ error }

// recover makes an error of a failure.
func (o *owner) recover(err *error) {
	switch f := recover().(type) {
	case nil:
	case failure:
		*err = f.error
	default:
		panic(f)
	}
}

func (o *owner) close() {
	for len(o.cleanups) > 0 {
		last := len(o.cleanups) - 1
		f := o.cleanups[last]
		o.cleanups = o.cleanups[:last]
		f()
	}
}

// The methods of testing.TB that testbed calls.

func (o *owner) Helper()                           {}
func (o *owner) Name() string                      { return "bench-yarn" }
func (o *owner) Failed() bool                      { return false }
func (o *owner) Cleanup(f func())                  { o.cleanups = append(o.cleanups, f) }
func (o *owner) Logf(format string, args ...any)   { fmt.Fprintf(os.Stderr, format+"\n", args...) }
func (o *owner) Errorf(format string, args ...any) { o.Logf(format, args...) }
func (o *owner) Fatal(args ...any)                 { panic(failure{fmt.Errorf("%s", fmt.Sprint(args...))}) }
func (o *owner) Fatalf(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }
func (o *owner) Skip(args ...any)                  { o.Fatal(args...) }
func (o *owner) Skipf(format string, args ...any)  { o.Fatalf(format, args...) }
