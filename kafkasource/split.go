package kafkasource

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf16"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka"
)

// noStop is the stop of a split that is read without end.
const noStop = math.MaxInt64

// splitState is what flow.Split.State holds: where to begin and end, always as offsets.
// Its encoding is a version byte, then topic (uvarint length, bytes), partition, start and stop as varints (stop -1: none).
type splitState struct {
	kafka.TP
	Start int64 // next offset to read
	Stop  int64 // offset to end before, or noStop
}

const splitVersion = 1

func (s splitState) split() flow.Split {
	b := []byte{splitVersion}
	b = binary.AppendUvarint(b, uint64(len(s.Topic)))
	b = append(b, s.Topic...)
	b = binary.AppendVarint(b, int64(s.Partition))
	b = binary.AppendVarint(b, s.Start)
	stop := s.Stop
	if stop == noStop {
		stop = -1
	}
	b = binary.AppendVarint(b, stop)
	return flow.Split{ID: s.TP.String(), State: b}
}

var errSplit = errors.New("malformed split of a Kafka source")

func parseSplit(split flow.Split) (splitState, error) {
	b := split.State
	if len(b) == 0 {
		return splitState{}, fmt.Errorf("%w: %q is empty", errSplit, split.ID)
	}
	if b[0] != splitVersion {
		return splitState{}, fmt.Errorf("%w: %q has version %d, this program reads %d", errSplit, split.ID, b[0], splitVersion)
	}
	b = b[1:]
	n, k := binary.Uvarint(b)
	if k <= 0 || n > uint64(len(b)-k) {
		return splitState{}, fmt.Errorf("%w: %q", errSplit, split.ID)
	}
	s := splitState{TP: kafka.TP{Topic: string(b[k : k+int(n)])}}
	b = b[k+int(n):]
	var v [3]int64
	for i := range v {
		x, k := binary.Varint(b)
		if k <= 0 {
			return splitState{}, fmt.Errorf("%w: %q", errSplit, split.ID)
		}
		v[i], b = x, b[k:]
	}
	if len(b) > 0 || v[0] < 0 || v[0] > math.MaxInt32 || v[1] < 0 || v[2] < -1 || s.Topic == "" {
		return splitState{}, fmt.Errorf("%w: %q", errSplit, split.ID)
	}
	s.Partition, s.Start, s.Stop = int32(v[0]), v[1], v[2]
	if s.Stop == -1 {
		s.Stop = noStop
	}
	return s, nil
}

// owner is the reader that gets a partition.
func owner(tp kafka.TP, readers int) int {
	start := int((javaHash(tp.Topic)*31)&0x7FFFFFFF) % readers
	return (start + int(tp.Partition)) % readers
}

// javaHash is Java's String.hashCode: over UTF-16 units, wrapping at 32 bits.
func javaHash(s string) int32 {
	var h int32
	for _, r := range s {
		if a, b := utf16.EncodeRune(r); a != '\uFFFD' {
			h = 31*(31*h+a) + b
		} else {
			h = 31*h + r
		}
	}
	return h
}
