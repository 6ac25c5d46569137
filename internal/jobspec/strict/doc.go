// Package strict decodes YAML into Go structs without forgiving anything, and describes the same structs as a JSON Schema.
//
// The structs are the one definition of a language: their field tags name, document and restrict what a file may say.
//
//	yaml:"name"      the key; with ",required" it must be there
//	doc:"…"          one sentence for people; the description in the schema
//	one:"group"      of the fields of a group exactly one must be set
//	enum:"a|b"       the only values of a String
//	values:"a|b"     the only values of the Strings of a Map
//	min:"1"          the least value of an Int
//	positive:""      a Duration that is more than 0
//	alt:"scalar"     in a struct whose fields all have it: the field is chosen by the YAML kind (scalar, list, map)
//
// Scalars are of this package's types ([String], [Text], [Int], [Bool], [Duration]), which remember where they stood, so that what is found
// wrong later, an expression for example, can still be shown in its line. Every problem of a file is reported, in the order of
// their places, each with its line, a caret, and the nearest valid name.
package strict
