package kafka

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/IBM/sarama"
)

// Kerberos says who we are to brokers that want GSSAPI.
type Kerberos struct {
	Service   string // first part of the brokers' principals; "": kafka
	Principal string // ours, such as etl@EXAMPLE.COM
	Keytab    string
	Cache     string // ticket cache, where there is no keytab; "": $KRB5CCNAME, or that of the user in /tmp
	Conf      string // "": $KRB5_CONFIG, or /etc/krb5.conf
}

func (k *Kerberos) validate() error {
	if name, realm, ok := strings.Cut(k.Principal, "@"); !ok || name == "" || realm == "" {
		return fmt.Errorf("%s is %q: with %s want a principal with its realm, such as etl@EXAMPLE.COM", OptKerberosPrincipal, k.Principal, "GSSAPI")
	}
	return nil
}

// sarama is the same for sarama, which does the handshake by gokrb5.
func (k *Kerberos) sarama() sarama.GSSAPIConfig {
	g := sarama.GSSAPIConfig{
		AuthType: sarama.KRB5_CCACHE_AUTH, CCachePath: strings.TrimPrefix(cmp.Or(k.Cache, os.Getenv("KRB5CCNAME"), "/tmp/krb5cc_"+strconv.Itoa(os.Getuid())), "FILE:"),
		KerberosConfigPath: cmp.Or(k.Conf, os.Getenv("KRB5_CONFIG"), "/etc/krb5.conf"),
		ServiceName:        cmp.Or(k.Service, "kafka"),
		DisablePAFXFAST:    true, // which some KDCs do not understand
	}
	g.Username, g.Realm, _ = strings.Cut(k.Principal, "@")
	if k.Keytab != "" {
		g.AuthType, g.KeyTabPath = sarama.KRB5_KEYTAB_AUTH, k.Keytab
	}
	return g
}
