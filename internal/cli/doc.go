// Package cli is the command of Heddle: one file a verb, and the dispatch to the roles that the same
// executable plays in an application (ApplicationMaster, agent).
//
// [Main] takes everything it touches of the outside world in an [Env], so that tests run commands in
// process. Results go to stdout, talk to stderr; a terminal gets colour and tables, a pipe plain text,
// and --json what programs read.
package cli
