package flow

func newReader[T any](out Out[T], l *layout) SegmentReader { return nil }
