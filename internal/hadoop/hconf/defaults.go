package hconf

// deprecated maps old names of keys to those in use.
var deprecated = map[string]string{
	"fs.default.name":             "fs.defaultFS",
	"dfs.federation.nameservices": "dfs.nameservices",
	"dfs.http.address":            "dfs.namenode.http-address",
	"dfs.https.address":           "dfs.namenode.https-address",
	"dfs.umaskmode":               "fs.permissions.umask-mode",
}

// defaults are those of core-default.xml, hdfs-default.xml and yarn-default.xml that a client needs.
// Hadoop keeps them inside its jars, and other values refer to them.
var defaults = map[string]string{
	"fs.defaultFS":                               "file:///",
	"hadoop.tmp.dir":                             "/tmp/hadoop-${user.name}",
	"hadoop.security.authentication":             "simple",
	"hadoop.security.authorization":              "false",
	"hadoop.rpc.protection":                      "authentication",
	"hadoop.security.token.service.use_ip":       "true",
	"hadoop.http.staticuser.user":                "dr.who",
	"fs.permissions.umask-mode":                  "022",
	"ipc.client.connect.timeout":                 "20000",
	"ipc.client.connection.maxidletime":          "10000",
	"ipc.client.ping":                            "true",
	"ipc.ping.interval":                          "60000",
	"ipc.client.rpc-timeout.ms":                  "120000",
	"ipc.maximum.response.length":                "134217728",
	"ipc.client.fallback-to-simple-auth-allowed": "false",

	"dfs.replication":                  "3",
	"dfs.blocksize":                    "134217728",
	"dfs.http.policy":                  "HTTP_ONLY",
	"dfs.client.use.datanode.hostname": "false",
	"dfs.client.failover.max.attempts": "15",

	"yarn.http.policy":                                                "HTTP_ONLY",
	"yarn.acl.enable":                                                 "false",
	"yarn.resourcemanager.hostname":                                   "0.0.0.0",
	"yarn.resourcemanager.address":                                    "${yarn.resourcemanager.hostname}:8032",
	"yarn.resourcemanager.scheduler.address":                          "${yarn.resourcemanager.hostname}:8030",
	"yarn.resourcemanager.admin.address":                              "${yarn.resourcemanager.hostname}:8033",
	"yarn.resourcemanager.webapp.address":                             "${yarn.resourcemanager.hostname}:8088",
	"yarn.resourcemanager.webapp.https.address":                       "${yarn.resourcemanager.hostname}:8090",
	"yarn.resourcemanager.ha.enabled":                                 "false",
	"yarn.resourcemanager.am.max-attempts":                            "2",
	"yarn.resourcemanager.connect.retry-interval.ms":                  "30000",
	"yarn.resourcemanager.connect.max-wait.ms":                        "900000",
	"yarn.am.liveness-monitor.expiry-interval-ms":                     "600000",
	"yarn.scheduler.minimum-allocation-mb":                            "1024",
	"yarn.scheduler.maximum-allocation-mb":                            "8192",
	"yarn.scheduler.minimum-allocation-vcores":                        "1",
	"yarn.scheduler.maximum-allocation-vcores":                        "4",
	"yarn.nodemanager.vmem-check-enabled":                             "true",
	"yarn.nodemanager.vmem-pmem-ratio":                                "2.1",
	"yarn.nodemanager.remote-app-log-dir":                             "/tmp/logs",
	"yarn.log-aggregation-enable":                                     "false",
	"yarn.resourcemanager.rm.container-allocation.expiry-interval-ms": "600000",
}
