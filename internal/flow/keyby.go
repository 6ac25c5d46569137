package flow

import (
	"reflect"
	"unsafe"
)

// KeyBy is how records of type T are partitioned by key: it finds the key groups of a batch at once.
// It is the Impl of a Hash Partitioning. It has no state: any number of writers may share it.
type KeyBy[T any] struct {
	// find puts owner[group] of each record into out, or the group itself where owner is nil.
	find func(recs []T, groups int, owner, out []uint16)
}

// NewKeyBy partitions by the key that key extracts.
func NewKeyBy[T, K any](key func(T) K) (*KeyBy[T], error) {
	hash, err := HashOf[K]()
	if err != nil {
		return nil, err
	}
	switch k := reflect.TypeFor[K]().Kind(); {
	case k == reflect.String:
		return &KeyBy[T]{func(recs []T, groups int, owner, out []uint16) {
			for i := range recs {
				k := key(recs[i])
				out[i] = owned(HashString(*(*string)(unsafe.Pointer(&k))), groups, owner)
			}
		}}, nil
	case k == reflect.Int || k == reflect.Int64 || k == reflect.Uint || k == reflect.Uint64:
		return &KeyBy[T]{func(recs []T, groups int, owner, out []uint16) {
			for i := range recs {
				k := key(recs[i])
				out[i] = owned(HashUint64(*(*uint64)(unsafe.Pointer(&k))), groups, owner)
			}
		}}, nil
	}
	return &KeyBy[T]{func(recs []T, groups int, owner, out []uint16) {
		var k K
		for i := range recs {
			k = key(recs[i])
			out[i] = owned(hash(&k), groups, owner)
		}
	}}, nil
}

// owned is the owner of a hash's key group, or the group where owner is nil.
func owned(hash uint64, groups int, owner []uint16) uint16 {
	g := KeyGroup(hash, groups)
	if g < len(owner) {
		return owner[g]
	}
	return uint16(g)
}

// Groups puts the key group of recs[i] into out[i].
func (k *KeyBy[T]) Groups(recs []T, groups int, out []uint16) { k.find(recs, groups, nil, out) }
