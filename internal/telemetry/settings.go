package telemetry

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
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

	// What the environment says of one of both alone; nil: as above.
	traces, metrics *target
}

// target is where one signal goes.
type target struct {
	url      string // whole, as it is used
	protocol string
	headers  map[string]string
}

// to is where a signal goes whose own target is own and whose path by HTTP is path.
func (s *Settings) to(own *target, path string) target {
	if own != nil {
		return *own
	}
	t := target{s.Endpoint, s.Protocol, s.Headers}
	if s.Protocol == HTTP {
		t.url += path
	}
	return t
}

// Resolve completes what options say by the standard OTEL_ variables, which options override. Those for one signal go before those for all.
// endpoint, protocol and headers may be "".
func Resolve(endpoint, protocol, headers string, getenv func(string) string) (Settings, error) {
	env := func(name string) string { return strings.TrimSpace(getenv(name)) }
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") {
		return Settings{}, nil
	}
	s := Settings{Endpoint: cmp.Or(endpoint, env("OTEL_EXPORTER_OTLP_ENDPOINT")), Protocol: cmp.Or(protocol, knownProtocol(env("OTEL_EXPORTER_OTLP_PROTOCOL"))),
		Traces: env("OTEL_TRACES_EXPORTER") != "none", Metrics: env("OTEL_METRICS_EXPORTER") != "none"}
	headers = cmp.Or(headers, env("OTEL_EXPORTER_OTLP_HEADERS"))
	if endpoint == "" {
		for _, x := range []struct {
			name string
			own  **target
			on   *bool
		}{{"TRACES", &s.traces, &s.Traces}, {"METRICS", &s.metrics, &s.Metrics}} {
			of := func(what string) string { return env("OTEL_EXPORTER_OTLP_" + x.name + "_" + what) }
			*x.on = *x.on && cmp.Or(of("ENDPOINT"), s.Endpoint) != ""
			if !*x.on || of("ENDPOINT")+of("PROTOCOL")+of("HEADERS") == "" {
				continue
			}
			one := Settings{Endpoint: cmp.Or(of("ENDPOINT"), s.Endpoint), Protocol: cmp.Or(protocol, knownProtocol(of("PROTOCOL")), s.Protocol)}
			url, err := one.complete(cmp.Or(of("HEADERS"), headers))
			if err != nil {
				return Settings{}, err
			}
			if of("ENDPOINT") == "" { // the common one, to which the path belongs
				url = one.to(nil, "/v1/"+strings.ToLower(x.name)).url
			}
			*x.own = &target{url, one.Protocol, one.Headers}
		}
	}
	if s.Endpoint == "" {
		if s.traces == nil && s.metrics == nil {
			return Settings{}, nil
		}
		return s, nil
	}
	_, err := s.complete(headers)
	return s, err
}

// complete checks s and fills in what follows. It returns the endpoint as it was meant, with any path.
func (s *Settings) complete(headers string) (string, error) {
	if !strings.Contains(s.Endpoint, "://") {
		s.Endpoint = "http://" + s.Endpoint
	}
	u, err := url.Parse(s.Endpoint)
	wrong := ""
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		wrong = "want a URL such as http://collector:4317"
	case u.User != nil:
		wrong = "a user and password do not belong into a URL, which is shown: set HEDDLE_TRACE_HEADERS or OTEL_EXPORTER_OTLP_HEADERS, to authorization=Basic%20… for example"
	case strings.ContainsAny(s.Endpoint, "?#"):
		wrong = "want a URL without a query (?) and a fragment (#)"
	}
	if wrong != "" {
		return "", fmt.Errorf("cannot send traces to %q: %s", withoutSecrets(s.Endpoint), wrong)
	}
	whole := s.Endpoint
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
		return "", fmt.Errorf("cannot send traces by protocol %q: want %s or %s", s.Protocol, GRPC, HTTP)
	}
	s.Headers, err = parseHeaders(headers)
	return whole, err
}

// withoutSecrets is a URL, or what was to be one, without user, password, query and fragment.
func withoutSecrets(endpoint string) string {
	scheme, rest, _ := strings.Cut(endpoint, "://")
	rest = rest[strings.LastIndex(rest, "@")+1:]
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		rest = rest[:i]
	}
	return scheme + "://" + rest
}

// knownProtocol is what a variable says, or "" if it is not known: such a value counts as none, by OpenTelemetry's specification.
func knownProtocol(name string) string {
	switch name {
	case GRPC, HTTP, "http", "http/json":
		return name
	}
	return ""
}

// What HTTP has as a header.
var (
	headerName  = regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9A-Za-z]+$")
	headerValue = regexp.MustCompile(`^[^\x00-\x08\x0a-\x1f\x7f]*$`)
)

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
		if !ok || err != nil || !headerName.MatchString(name) || !headerValue.MatchString(value) {
			return nil, fmt.Errorf("cannot read header %d for the OTLP collector: want name=value,name=value", i+1)
		}
		headers[name] = value
	}
	return headers, nil
}
