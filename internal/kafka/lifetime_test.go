package kafka

import (
	"encoding/binary"
	"testing"
	"time"
)

// TestLifetime: the last answer to SaslAuthenticate tells how long a login lasts, however what is read is cut.
func TestLifetime(t *testing.T) {
	frame := func(b []byte) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...) }
	request := func(key, version int16) []byte {
		b := binary.BigEndian.AppendUint16(nil, uint16(key))
		return frame(append(binary.BigEndian.AppendUint16(b, uint16(version)), 0, 0, 0, 1))
	}
	answer := func(ms int64) []byte {
		b := []byte{0, 0, 0, 1, 0, 0, 0xff, 0xff, 0, 0, 0, 2, 'o', 'k'}
		return frame(binary.BigEndian.AppendUint64(b, uint64(ms)))
	}
	flexible := func(ms int64) []byte {
		b := []byte{0, 0, 0, 1, 0, 0, 0, 0, 3, 'o', 'k'}
		return frame(append(binary.BigEndian.AppendUint64(b, uint64(ms)), 0))
	}
	type exchange struct{ request, answer []byte }
	shake := exchange{request(17, 1), frame([]byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0})}
	for name, test := range map[string]struct {
		exchanges []exchange
		want      time.Duration
	}{
		"no login":        {[]exchange{{request(18, 0), frame([]byte{0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18})}}, 0},
		"without end":     {[]exchange{shake, {request(36, 1), answer(0)}}, 0},
		"an hour":         {[]exchange{shake, {request(36, 1), answer(3_600_000)}}, time.Hour},
		"version 2":       {[]exchange{shake, {request(36, 2), flexible(3_600_000)}}, time.Hour},
		"the last counts": {[]exchange{shake, {request(36, 1), answer(0)}, {request(36, 1), answer(10_000)}}, 10 * time.Second},
		"version 0":       {[]exchange{shake, {request(36, 0), answer(10_000)}}, 0},
		"absurd":          {[]exchange{{request(36, 1), answer(1 << 62)}}, 365 * 24 * time.Hour},
		"cut":             {[]exchange{{request(36, 1), answer(10_000)[:12]}}, 0},
	} {
		var h handshake
		for _, e := range test.exchanges {
			h.wrote(e.request)
			for _, b := range e.answer {
				h.read([]byte{b})
			}
		}
		if got := h.lifetime(); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
	now := time.Unix(1000, 0)
	for _, spread := range []float64{0, 0.5, 0.999} {
		if at := renewAt(now, time.Hour, spread).Sub(now); at < 48*time.Minute || at > 54*time.Minute {
			t.Errorf("renewed after %v", at)
		}
	}
	if !renewAt(now, 0, 0).IsZero() {
		t.Error("a login without end is renewed")
	}
}

func FuzzLifetime(f *testing.F) {
	f.Add([]byte{0, 0, 0, 8, 0, 36, 0, 1, 0, 0, 0, 1}, []byte{0, 0, 0, 20})
	f.Fuzz(func(t *testing.T, out, in []byte) {
		var h handshake
		h.wrote(out)
		h.read(in)
		if life := h.lifetime(); life < 0 || life > maxLifetime {
			t.Errorf("lifetime %v", life)
		}
	})
}
