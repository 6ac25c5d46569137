// Package kerberos tests against a real MIT KDC and a Hadoop cluster that demands Kerberos. Run it by make itest-kerberos.
package kerberos
