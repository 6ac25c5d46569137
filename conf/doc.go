// Package conf knows every option of Heddle: its name, type, default, unit and meaning stand in one
// registry, from which the commented default file (conf/heddle.yaml), the reference page
// (docs/configuration.md), the command's flags and the environment's names are all derived.
//
// [Load] resolves a configuration: default < file < environment < flag. Each value remembers where
// it came from. A name that the registry does not have is an error with the nearest name that it has.
//
// Options of connectors are declared through package heddle and merged by [Builtin].
package conf
