package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"

	"github.com/jcmturner/gokrb5/v8/iana/errorcode"

	"github.com/heddle-stream/heddle/internal/hadoop/krb"
)

// Kerberos says who we are to brokers that want GSSAPI.
type Kerberos struct {
	Service   string // first part of the brokers' principals; "": kafka
	Principal string // ours, such as etl@EXAMPLE.COM; "": whose the keytab or cache is
	Keytab    string
	Cache     string // ticket cache, where there is no keytab; "": $KRB5CCNAME, or what krb5.conf says
	Conf      string // "": $KRB5_CONFIG, or /etc/krb5.conf

	Login *krb.Login // in place of all of these but the service; nil: as they say
}

func (k *Kerberos) validate() error {
	if k.Principal == "" {
		return nil
	}
	if name, realm, ok := strings.Cut(k.Principal, "@"); name == "" || ok && realm == "" {
		return fmt.Errorf("%s is %q: want a principal with its realm, such as etl@EXAMPLE.COM", OptKerberosPrincipal, k.Principal)
	}
	return nil
}

// env is the environment in which Kerberos is configured.
func (k *Kerberos) env(name string) (string, bool) {
	if name == "KRB5_CONFIG" && k.Conf != "" {
		return k.Conf, true
	}
	return os.LookupEnv(name)
}

// logins are shared by all connections of the process: a KDC is asked once for a ticket that many show, and need not be there when a connection is made anew.
var logins = struct {
	sync.Mutex
	of map[Kerberos]*krb.Login // guarded by the mutex
}{of: map[Kerberos]*krb.Login{}}

// login returns who we are, logged in or about to be.
func (k *Kerberos) login() (*krb.Login, error) {
	if k.Login != nil {
		return k.Login, nil
	}
	key := Kerberos{Principal: k.Principal, Keytab: k.Keytab, Cache: k.Cache, Conf: k.Conf}
	logins.Lock()
	l := logins.of[key]
	logins.Unlock()
	if l != nil {
		return l, nil
	}
	l, err := krb.Open(krb.Config{Env: k.env, Keytab: k.Keytab, Principal: k.Principal, Cache: k.Cache})
	if err != nil {
		return nil, err
	}
	logins.Lock()
	defer logins.Unlock()
	if other := logins.of[key]; other != nil {
		return other, nil
	}
	logins.of[key] = l
	return l, nil
}

// forget makes the next login read the keytab and krb5.conf anew: they may have changed.
func (k *Kerberos) forget() {
	logins.Lock()
	defer logins.Unlock()
	delete(logins.of, Kerberos{Principal: k.Principal, Keytab: k.Keytab, Cache: k.Cache, Conf: k.Conf})
}

// KerberosError says that we can't prove to a broker who we are, by no fault of the broker's.
type KerberosError struct{ Err error }

func (e *KerberosError) Error() string { return e.Err.Error() }
func (e *KerberosError) Unwrap() error { return e.Err }

// ticket returns a ticket for the broker at addr.
func (k *Kerberos) ticket(ctx context.Context, addr string) (*krb.Ticket, error) {
	l, err := k.login()
	if err != nil {
		return nil, &KerberosError{err}
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	service := krb.Principal{Parts: []string{k.service(), strings.ToLower(strings.TrimSuffix(host, "."))}}
	t, err := l.Ticket(ctx, service)
	if err == nil {
		return t, nil
	}
	if ctx.Err() == nil {
		k.forget()
	}
	if refused, ok := errors.AsType[*krb.KDCError](err); ok && refused.Code == errorcode.KDC_ERR_S_PRINCIPAL_UNKNOWN {
		its := *refused
		its.Hint = fmt.Sprintf("there is no service %s there: check %s, and that brokers are advertised by the names that are in their principals", service, OptKerberosService)
		err = fmt.Errorf("cannot get a Kerberos ticket for %s: %w", service, &its)
	}
	return nil, &KerberosError{err}
}

func (k *Kerberos) service() string {
	if k.Service == "" {
		return "kafka"
	}
	return k.Service
}
