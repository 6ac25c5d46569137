package kafka

// KeyPartition is the partition of a key among n, as Kafka's own clients have it (murmur2), so that
// topics written by both are partitioned alike.
func KeyPartition(key []byte, n int32) int32 { return int32(murmur2(key)&0x7fffffff) % n }

func murmur2(b []byte) uint32 {
	const (
		seed = 0x9747b28c
		m    = 0x5bd1e995
	)
	h := seed ^ uint32(len(b))
	for len(b) >= 4 {
		k := (uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24) * m
		k = (k ^ k>>24) * m
		h = h*m ^ k
		b = b[4:]
	}
	switch len(b) {
	case 3:
		h ^= uint32(b[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(b[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(b[0])) * m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}
