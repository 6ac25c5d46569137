package cli

import (
	"strings"

	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/doctor"
	"github.com/heddle-stream/heddle/internal/kafka"
)

// withTokens says of clusters of Kafka whether a job logs in to them by delegation tokens of theirs, as a submission decides it, and has them be asked by the login
// that such tokens are got by.
func (s *session) withTokens(ks []doctor.KafkaCluster, c *conf.Config) []doctor.KafkaCluster {
	mode := c.Text(kafka.OptDelegationToken)
	if mode == "off" || c.Text("target") != "yarn" {
		return ks
	}
	user, acts := s.lookup("HADOOP_PROXY_USER")
	real := ""
	if acts {
		real = "who logs in"
	}
	for i := range ks {
		k := &ks[i]
		own := &k.Config.SASL.Kerberos
		switch {
		case mode == "on":
			k.Tokens = doctor.Demanded
			if k.Barred = k.Err; k.Barred == nil {
				k.Barred = wantsGSSAPI(k.Config)
			}
			if k.Barred == nil {
				k.Barred = mayDelegate(c, k.Config, real, user)
			}
		case k.Err == nil && wantsGSSAPI(k.Config) == nil && own.Keytab == "" && !acts:
			k.Tokens = doctor.IfThere
		default:
			continue
		}
		if keytab := strings.TrimPrefix(c.Text("kerberos.keytab"), "FILE:"); own.Keytab == "" && own.Cache == "" && own.Principal == "" && keytab != "" {
			own.Keytab, own.Principal = keytab, c.Text("kerberos.principal")
		}
	}
	return ks
}
