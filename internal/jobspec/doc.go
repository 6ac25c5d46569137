// Package jobspec makes jobs of YAML files.
//
// A file goes through five passes: decode (package strict; the language is the types of language.go), resolve names into
// operators, check (columns and their types, expressions), work out which columns are needed at all, and build the operators of
// package heddle on rows (package row). Everything wrong is reported together, each with its line and a caret.
package jobspec
