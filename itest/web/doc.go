// Package web tests the dashboard as people see it: in a real Chromium, on the running demo job, on a big job, on a job full
// of markup, and behind a proxy such as YARN's.
package web
