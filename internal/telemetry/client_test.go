package telemetry

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/telemetry/otlptest"
)

func onePoint() []Family { return []Family{{Name: "heddle.x", Points: []Point{{Value: 1}}}} }

// TestRedirects: a collector can't have spans, metrics and secrets sent elsewhere, and that it tries to is told without them.
func TestRedirects(t *testing.T) {
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		for _, signal := range []string{"traces", "metrics"} {
			t.Run(http.StatusText(status)+" "+signal, func(t *testing.T) {
				var elsewhere atomic.Int64
				thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
				defer thief.Close()
				srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, thief.URL, status) }))
				defer srv.Close()
				var log said
				cfg := Config{Settings: Settings{Endpoint: srv.URL, Protocol: HTTP, Headers: map[string]string{"x-api-key": "hunter2"}, Traces: signal == "traces", Metrics: signal == "metrics"},
					Service: "job", Logger: slog.New(slog.NewTextHandler(&log, nil)), Figures: onePoint, Interval: time.Hour}
				p := provider(t, cfg)
				p.Start(Start{Name: "x"}).End(time.Time{})
				_ = closeNow(t, p, time.Minute)
				if n := elsewhere.Load(); n != 0 {
					t.Errorf("%d requests went elsewhere", n)
				}
				if want := map[bool]Stats{true: {Failed: 1}}[cfg.Traces]; p.Stats() != want {
					t.Errorf("the figures are %+v, want %+v", p.Stats(), want)
				}
				if text := log.String(); strings.Count(text, signal+" are lost") != 1 || !strings.Contains(text, "endpoint="+srv.URL) || !strings.Contains(text, "redirect") || strings.Contains(text, "hunter2") {
					t.Errorf("it says %q", text)
				}
			})
		}
	}
}

// TestTLSVariables: the collector's certificate is trusted, and the client's shown, as the variables say; for http:// they do not matter.
func TestTLSVariables(t *testing.T) {
	collector := otlptest.Start(t)
	plain, err := url.Parse(collector.URL)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(plain))
	srv.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	srv.StartTLS()
	defer srv.Close()
	key, err := x509.MarshalPKCS8PrivateKey(srv.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{"CERTIFICATE": {Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}, "CLIENT_KEY": {Type: "PRIVATE KEY", Bytes: key}} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("OTEL_EXPORTER_OTLP_"+name, file)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", filepath.Join(dir, "CERTIFICATE"))
	for i, to := range []string{srv.URL, collector.URL} {
		p := provider(t, Config{Settings: Settings{Endpoint: to, Protocol: HTTP, Traces: true, Metrics: true}, Service: "job", Figures: onePoint, Interval: time.Hour})
		p.Start(Start{Name: "x"}).End(time.Time{})
		if err := closeNow(t, p, time.Minute); err != nil {
			t.Error(err)
		}
		if s, m := len(collector.Spans()), len(collector.Metrics()); s != i+1 || m != i+1 {
			t.Errorf("%s: %d spans and %d metrics have come, want %d of each", to, s, m, i+1)
		}
	}
}
