package flow

// Sole is a sink that must be the only one of a job to write what it writes: two of them would overwrite each other's results.
type Sole interface {
	// Solely names what the sink writes alone, the same for all that write it, such as "files in /data/out".
	Solely() string
}

// SoleOf returns what a sink must be the only one to write, "" if there is nothing like that.
func SoleOf(sink any) string {
	if s, ok := sink.(Sole); ok {
		return s.Solely()
	}
	return ""
}

// Solely implements Sole where the connector does.
func (e encoded[T]) Solely() string { return SoleOf(e.sink) }
