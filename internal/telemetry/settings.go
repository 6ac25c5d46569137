package telemetry

import (
	"fmt"
	"net/url"
	"strings"
)

// Protocols of OTLP.
const (
	GRPC = "grpc"
	HTTP = "http/protobuf"
)

// Settings say where traces and metrics go.
type Settings struct {
	Endpoint string            // base URL of a collector, such as http://collector:4317; "": nowhere
	Protocol string            // GRPC or HTTP
	Headers  map[string]string // sent with each request; secret
	Traces   bool              // whether spans are exported
	Metrics  bool              // whether metrics are
}

// Resolve completes what options say by the standard OTEL_ variables, which options override.
// endpoint, protocol and headers may be "".
func Resolve(endpoint, protocol, headers string, getenv func(string) string) (Settings, error) {
	first := func(names ...string) string {
		for _, n := range names {
			if v := strings.TrimSpace(getenv(n)); v != "" {
				return v
			}
		}
		return ""
	}
	s := Settings{Endpoint: endpoint, Protocol: protocol, Traces: true, Metrics: true}
	if s.Endpoint == "" {
		s.Endpoint = first("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	}
	if s.Protocol == "" {
		s.Protocol = first("OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
	}
	if headers == "" {
		headers = first("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
	}
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		s.Endpoint = ""
	}
	s.Traces = getenv("OTEL_TRACES_EXPORTER") != "none"
	s.Metrics = getenv("OTEL_METRICS_EXPORTER") != "none"
	return s, s.complete(headers)
}

// complete checks s and fills in what follows.
func (s *Settings) complete(headers string) error {
	if s.Endpoint == "" {
		*s = Settings{}
		return nil
	}
	if !strings.Contains(s.Endpoint, "://") {
		s.Endpoint = "http://" + s.Endpoint
	}
	u, err := url.Parse(s.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("cannot send traces to %q: want a URL such as http://collector:4317", s.Endpoint)
	}
	s.Endpoint = strings.TrimSuffix(strings.TrimSuffix(s.Endpoint, "/v1/traces"), "/")
	switch s.Protocol {
	case GRPC:
	case HTTP, "http", "http/json":
		s.Protocol = HTTP
	case "":
		s.Protocol = GRPC
		if u.Port() == "4318" || u.Path != "" && u.Path != "/" {
			s.Protocol = HTTP
		}
	default:
		return fmt.Errorf("cannot send traces by protocol %q: want %s or %s", s.Protocol, GRPC, HTTP)
	}
	s.Headers, err = parseHeaders(headers)
	return err
}

// parseHeaders reads name=value pairs separated by commas, with values as in URLs. An error does not show the values.
func parseHeaders(text string) (map[string]string, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	headers := map[string]string{}
	for i, pair := range strings.Split(text, ",") {
		name, value, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || name == "" || err != nil {
			return nil, fmt.Errorf("cannot read header %d for the OTLP collector: want name=value,name=value", i+1)
		}
		headers[name] = value
	}
	return headers, nil
}
