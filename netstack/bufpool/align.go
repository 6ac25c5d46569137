package bufpool

import "unsafe"

// alignedBytes returns n zero bytes that begin at a 64-byte boundary.
func alignedBytes(n int) []byte {
	b := make([]byte, n+63)
	off := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & 63)
	return b[off : off+n : off+n]
}
