package telemetry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
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
