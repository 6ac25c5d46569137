// Package telemetry sends traces and metrics to an OpenTelemetry collector, and writes metrics for Prometheus.
// It is the one place that knows OpenTelemetry's SDK.
//
// A Provider exports spans by OTLP. What it can't send in time it drops and counts: a slow or dead collector never slows
// a job. A nil Provider, and the zero Span, are right to use and do nothing.
//
// Metrics are Families of figures, made anew for each reader. They have the names of OpenTelemetry's conventions;
// Prometheus gets those that its own rules make of them.
package telemetry
