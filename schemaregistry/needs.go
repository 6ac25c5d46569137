package schemaregistry

import "github.com/heddle-stream/heddle/internal/flow"

// Needs implements flow.Needing: to read, the schemas of what is read; to write, the subject under which the schema is registered.
func (f *AvroFormat[T]) Needs() []flow.Need {
	if f.subject == "" {
		return []flow.Need{{Kind: flow.NeedSubject, Read: true}}
	}
	return []flow.Need{{Kind: flow.NeedSubject, Name: f.subject, Read: true, Write: true}}
}

// Needs implements flow.Needing: to read, the schemas of what is read; to write, the schema of the subject.
func (f *ProtobufFormat[M]) Needs() []flow.Need {
	return []flow.Need{{Kind: flow.NeedSubject, Name: f.subject, Read: true}}
}

// Needs implements flow.Needing: the schemas of what is read.
func (d *Documents) Needs() []flow.Need { return []flow.Need{{Kind: flow.NeedSubject, Read: true}} }
