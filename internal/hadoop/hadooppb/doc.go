// Package hadooppb holds the messages of Hadoop's protocols that Heddle speaks: the RPC envelope with its SASL
// messages, tokens, and the protocols of YARN. The .proto files are a subset written for Heddle; they are proto2, since
// presence and defaults matter to Hadoop.
package hadooppb

//go:generate go run ../../protogen hadoop_common.proto hadoop_yarn.proto
