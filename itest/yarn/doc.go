// Package yarn tests the Hadoop and YARN clients on a real cluster: HDFS, a ResourceManager and NodeManagers, started by package testbed.
// Run it by make itest-yarn.
package yarn
