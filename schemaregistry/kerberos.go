package schemaregistry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/heddle-stream/heddle/internal/hadoop/krb"
)

// Options that say who we are to a registry that demands Kerberos.
const (
	optKerberos          = "schema-registry.kerberos.enabled"
	optKerberosPrincipal = "schema-registry.kerberos.principal"
	optKerberosKeytab    = "schema-registry.kerberos.keytab"
	optKerberosCache     = "schema-registry.kerberos.cache"
	optKerberosConf      = "schema-registry.kerberos.conf"

	// Where the registry has none of its own, we are to it who we are to Kafka.
	ofRegistry, ofKafka = "schema-registry.kerberos.", "kafka.sasl.kerberos."
)

// kerberosError says that we can't prove who we are.
type kerberosError struct{ err error }

func (e *kerberosError) Error() string {
	return "cannot prove by Kerberos who we are: " + e.err.Error()
}
func (e *kerberosError) Unwrap() error { return e.err }

func ofKerberos(err error) bool {
	_, ok := errors.AsType[*kerberosError](err)
	return ok
}

// tickets is a *krb.Login.
type tickets interface {
	Ticket(ctx context.Context, service krb.Principal) (*krb.Ticket, error)
}

// prover gives tickets, and marks what goes wrong as Kerberos's.
type prover struct{ who tickets }

func (p prover) Ticket(ctx context.Context, service krb.Principal) (*krb.Ticket, error) {
	t, err := p.who.Ticket(ctx, service)
	if err != nil {
		return nil, &kerberosError{err}
	}
	return t, nil
}

// byKerberos makes base answer a registry that demands SPNEGO, if that is wanted.
func byKerberos(base http.RoundTripper, option func(string) (string, bool)) (http.RoundTripper, error) {
	enabled := false
	if v, ok := option(optKerberos); ok && strings.TrimSpace(v) != "" {
		var err error
		if enabled, err = strconv.ParseBool(strings.TrimSpace(v)); err != nil {
			return nil, fmt.Errorf("%s is %q: want true or false", optKerberos, v)
		}
	}
	if !enabled {
		return base, nil
	}
	str := func(name string) string {
		for _, n := range []string{name, ofKafka + strings.TrimPrefix(name, ofRegistry)} {
			if v, ok := option(n); ok && strings.TrimSpace(v) != "" {
				return strings.TrimSpace(v)
			}
		}
		return ""
	}
	conf := str(optKerberosConf)
	l, err := krb.Open(krb.Config{Principal: str(optKerberosPrincipal), Keytab: str(optKerberosKeytab), Cache: str(optKerberosCache),
		Env: func(name string) (string, bool) {
			if name == "KRB5_CONFIG" && conf != "" {
				return conf, true
			}
			return os.LookupEnv(name)
		}})
	if err != nil {
		return nil, fmt.Errorf("cannot use %s: %w", optKerberos, err)
	}
	return negotiating(base, l), nil
}

func negotiating(base http.RoundTripper, who tickets) http.RoundTripper {
	return &krb.Transport{Base: base, Login: prover{who}}
}

// unanswered is the error of a request that came to nothing. What a KDC refuses, another try does not cure.
func unanswered(err error) error {
	k, ok := errors.AsType[*kerberosError](err)
	if !ok {
		return &UnavailableError{err}
	}
	if _, ok := errors.AsType[*krb.KDCError](k); ok {
		return &refusedError{text: k.Error(), kerberos: true}
	}
	return &UnavailableError{k}
}
