// Package ctlpb is generated from ../ctl.proto: the messages between the ApplicationMaster and its agents.
package ctlpb
