package telemetry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// errRedirect refuses a redirect: whoever answers in the collector's place must not have the spans and headers sent anywhere.
var errRedirect = errors.New("the collector answers with a redirect, which is not followed")

// httpClient sends a signal, TRACES or METRICS, by HTTP. It is as the SDK's own, with its variables, but for redirects and proxies:
// what HTTP_PROXY says on a gateway is not for the inside of a cluster.
func httpClient(signal string) *http.Client {
	timeout := envInt(otlpVar+signal+"_TIMEOUT", envInt(otlpVar+"TIMEOUT", int(queueLimit/time.Millisecond)))
	trust, _ := tlsConfig(signal) // Ignored tells what is wrong
	return &http.Client{
		Timeout:       time.Duration(timeout) * time.Millisecond,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect },
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSClientConfig:     trust,
			TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second, ForceAttemptHTTP2: true,
		},
	}
}

const otlpVar = "OTEL_EXPORTER_OTLP_"

// tlsConfig is whom a signal trusts and what it shows, by the environment. What can't be read is left out, as the SDK has it, and told.
func tlsConfig(signal string) (cfg *tls.Config, wrong []string) {
	cfg = &tls.Config{}
	for _, prefix := range []string{otlpVar, otlpVar + signal + "_"} {
		env := func(name string) string { return strings.TrimSpace(os.Getenv(prefix + name)) }
		if file := env("CERTIFICATE"); file != "" {
			if pool, err := certPool(file); err == nil {
				cfg.RootCAs = pool
			} else {
				wrong = append(wrong, fmt.Sprintf("%sCERTIFICATE is ignored: %v", prefix, err))
			}
		}
		if cert, key := env("CLIENT_CERTIFICATE"), env("CLIENT_KEY"); cert != "" && key != "" {
			if pair, err := tls.LoadX509KeyPair(cert, key); err == nil {
				cfg.Certificates = []tls.Certificate{pair}
			} else {
				wrong = append(wrong, fmt.Sprintf("%sCLIENT_CERTIFICATE and %[1]sCLIENT_KEY are ignored: %v", prefix, err))
			}
		}
	}
	return cfg, wrong
}

// Ignored says which variables of the environment New leaves out, since they can't be used.
func (s *Settings) Ignored() (wrong []string) {
	for _, x := range []struct {
		signal string
		on     bool
		own    *target
	}{{"TRACES", s.Traces, s.traces}, {"METRICS", s.Metrics, s.metrics}} {
		to := s.to(x.own, "").url
		if !x.on || to == "" {
			continue
		}
		if text := os.Getenv(otlpVar + x.signal + "_PROTOCOL"); knownProtocol(strings.TrimSpace(text)) != strings.TrimSpace(text) {
			wrong = append(wrong, fmt.Sprintf("%s%s_PROTOCOL is ignored: %q is not a protocol of OTLP", otlpVar, x.signal, text))
		}
		if strings.HasPrefix(to, "https:") {
			_, bad := tlsConfig(x.signal)
			wrong = append(wrong, bad...)
		}
	}
	if bad := badSampler(os.Getenv(samplerVar), os.Getenv(samplerArgVar)); s.Traces && bad != "" {
		wrong = append(wrong, bad)
	}
	if wrong = append(wrong, badAttributes(os.Getenv("OTEL_RESOURCE_ATTRIBUTES"))...); s.Endpoint == "" && s.traces == nil && s.metrics == nil {
		return nil
	}
	slices.Sort(wrong)
	return slices.Compact(wrong) // what is for both signals comes twice
}

// badAttributes says what of name=value pairs separated by commas the SDK leaves out, or takes without decoding it.
func badAttributes(text string) (wrong []string) {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	for i, pair := range strings.Split(text, ",") {
		_, value, ok := strings.Cut(pair, "=")
		if !ok {
			wrong = append(wrong, fmt.Sprintf("attribute %d of OTEL_RESOURCE_ATTRIBUTES is ignored: want name=value,name=value", i+1))
		} else if _, err := url.PathUnescape(value); err != nil {
			wrong = append(wrong, fmt.Sprintf("attribute %d of OTEL_RESOURCE_ATTRIBUTES is taken as it stands: %v", i+1, err))
		}
	}
	return wrong
}

func certPool(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate in PEM form", file)
	}
	return pool, nil
}
