// Package hadooppb holds the messages of Hadoop's protocols that Heddle speaks: the RPC envelope with its SASL
// messages, tokens, the protocols of YARN, and the protection of data transfer in HDFS. The .proto files are a subset written for Heddle; they are proto2, since
// presence and defaults matter to Hadoop.
package hadooppb

//go:generate go run ../../protogen hadoop_common.proto hadoop_hdfs.proto hadoop_yarn.proto hadoop_access.proto
