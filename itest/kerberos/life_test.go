package kerberos

import (
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/itest/testbed"
)

// TestLife is a job that outlives its delegation tokens twice over, on a cluster where all is sealed and data is encrypted. The first tokens are good for
// half a minute and can be renewed once.
func TestLife(t *testing.T) {
	testbed.Group(t, "kerberos-long")
	x := startCluster(t, testbed.KDCOptions{}, testbed.HadoopOptions{
		Core: map[string]string{"hadoop.rpc.protection": "privacy"},
		HDFS: map[string]string{
			"dfs.encrypt.data.transfer": "true", "dfs.encrypt.data.transfer.cipher.suites": "AES/CTR/NoPadding",
			"dfs.namenode.delegation.token.renew-interval": "30000", "dfs.namenode.delegation.token.max-lifetime": "60000",
		},
		DataTransfer: "privacy",
	})
	x.folders(t)
	exe := testbed.BuildProgram(t, x.bed, "./cmd/heddle", "heddle")
	const seconds = 150
	job := x.bed.File("life.yaml", fmt.Sprintf(`name: life
source: { generator: { count: %d, rate: 10, record: { n: n } } }
sink: { file: { path: "hdfs:///user/alice/life", format: json } }
`, 10*seconds))
	out, err := x.heddle(t, exe, nil, "run", job, "--target", "yarn", "--agents", "1", "--kerberos.keytab", x.kdc.KeytabOf("alice"))
	logs := x.logs()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, logs)
	}
	if n := strings.Count(logs, "took fresh tokens"); n < 3 {
		t.Errorf("the agent took fresh tokens %d times\n%s", n, logs)
	}
	x.checkLines(t, "/user/alice/life", 10*seconds)
}
