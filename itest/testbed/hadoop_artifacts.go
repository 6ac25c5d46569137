package testbed

import "context"

// HadoopVersion is the release of Apache Hadoop that the tests run.
const HadoopVersion = "3.4.3"

// hadoopArtifacts are all that HDFS and YARN daemons and their command line classes need.
// The ResourceManager does not start without the timeline service, though nothing uses it.
func hadoopArtifacts() []Artifact {
	var as []Artifact
	for _, n := range []string{
		"common", "auth", "hdfs", "hdfs-client", "yarn-client",
		"yarn-server-resourcemanager", "yarn-server-nodemanager", "yarn-server-timelineservice",
	} {
		as = append(as, Artifact("org.apache.hadoop:hadoop-"+n+":"+HadoopVersion))
	}
	return as
}

// HadoopJars is the folder of Hadoop's jars.
func HadoopJars(ctx context.Context) (string, error) {
	return Jars(ctx, "hadoop", hadoopArtifacts()...)
}
