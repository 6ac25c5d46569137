package telemetry

// Phases of a record's way through the exchange, in order of time.
const (
	PhaseFill    = iota // in the producer's segment, until that is full or flushed
	PhaseCredit         // until the consumer has given credit
	PhaseSend           // in the send queue of the connection
	PhaseWire           // written and on the wire
	PhaseReceive        // in the receive queue, and behind other records of its segment
	PhaseAlign          // while its channel was blocked until others had come to the same barrier
	Phases
)

// PhaseNames are the names of the phases in figures.
var PhaseNames = [Phases]string{"fill", "credit", "send_queue", "wire", "receive_queue", "alignment"}
