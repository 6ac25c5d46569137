// Package ctl is the control plane between the ApplicationMaster and its agents: how they reach each other
// and prove who they are, what is on the wire (ctlpb), and its translation into the words of package cluster.
package ctl

//go:generate go run ../protogen -out ctlpb -plugins protoc-gen-go,protoc-gen-go-grpc ctl.proto
