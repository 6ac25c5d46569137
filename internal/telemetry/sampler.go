package telemetry

import (
	"fmt"
	"strconv"
	"strings"
)

// Variables by which OpenTelemetry chooses the traces that are recorded. The SDK reads them.
const (
	samplerVar    = "OTEL_TRACES_SAMPLER"
	samplerArgVar = "OTEL_TRACES_SAMPLER_ARG"
)

func samplerName(text string) string { return strings.ToLower(strings.TrimSpace(text)) }

// samplesAll reports whether the sampler of this name takes every trace that nobody else has decided on, and each that was sampled.
func samplesAll(name string) bool {
	switch samplerName(name) {
	case "", "always_on", "parentbased_always_on":
		return true
	}
	return false
}

// badSampler says what of a sampler's name and argument the SDK can't use; "" if it can.
func badSampler(name, arg string) string {
	switch samplerName(name) {
	case "", "always_on", "always_off", "parentbased_always_on", "parentbased_always_off":
		return ""
	case "traceidratio", "parentbased_traceidratio":
		if arg = strings.TrimSpace(arg); arg == "" {
			return ""
		}
		if ratio, err := strconv.ParseFloat(arg, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
			return fmt.Sprintf("%s is ignored, and all traces are recorded: %q is not from 0 to 1", samplerArgVar, arg)
		}
		return ""
	}
	return fmt.Sprintf("%s is ignored: there is no sampler %q (want always_on, always_off or traceidratio, or one of these after parentbased_)", samplerVar, name)
}
