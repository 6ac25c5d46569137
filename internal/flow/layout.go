package flow

import (
	"fmt"
	"reflect"
)

// layout is how records of one type lie in segments.
type layout struct {
	size  int  // bytes of a record in memory
	fixed bool // no pointers: a record's memory is its encoding
}

func layoutOf(t reflect.Type, c *Codecs) (*layout, error) {
	switch t.Kind() {
	case reflect.Int64, reflect.Uint64:
		return &layout{size: int(t.Size()), fixed: true}, nil
	}
	return nil, fmt.Errorf("type %s can't be sent between processes", t)
}
