package flow

import "reflect"

// Codecs are the codecs that the author of a job gave for types of their own.
type Codecs struct {
	byType map[reflect.Type]any
}

// NewCodecs returns an empty set.
func NewCodecs() *Codecs { return &Codecs{byType: map[reflect.Type]any{}} }
