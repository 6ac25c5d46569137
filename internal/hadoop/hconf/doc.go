// Package hconf finds and reads Hadoop's configuration as Hadoop's own clients do: core-site.xml, hdfs-site.xml and
// yarn-site.xml of one folder over the defaults that are compiled into Hadoop's jars, with final properties,
// XInclude, variables and the keys of high availability. Every error names the file and the key.
//
// Where Hadoop would look through a classpath, hconf looks in the one folder. It neither fetches included URLs nor expands XML entities.
package hconf
