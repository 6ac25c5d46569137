package kerberos

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/hadoop/identity"
)

// testWebHDFSOverTLS speaks WebHDFS with NameNode and DataNode, which want our certificate, by the key that ssl-client.xml names, and hears why it fails without.
func (x *cluster) testWebHDFSOverTLS(t *testing.T) {
	x.filesOverHTTP(t, identity.NameNodesWeb, "/user/alice/over-tls")
	dir := x.otherConf(t, "keyless")
	x.bed.File("keyless/ssl-client.xml", "<configuration><property><name>ssl.client.truststore.location</name><value>"+filepath.Join(x.bed.Dir("hadoop/tls"), "truststore.jks")+"</value></property></configuration>")
	f := x.openOverHTTP(t, dir, identity.NameNodesWeb)
	if _, err := f.List("/"); err == nil || !strings.Contains(err.Error(), "it may want a certificate of ours, and there is none") {
		t.Errorf("without a certificate: %v", err)
	}
}
