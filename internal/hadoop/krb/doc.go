// Package krb logs in to Kerberos without Java and without libkrb5: from a ticket cache or a keytab, as krb5.conf says. It
// gets service tickets, opens GSSAPI contexts with them for Hadoop's RPC, and answers SPNEGO for HTTP.
//
// gokrb5 provides the messages and the cryptography. What it lacks or does badly is done here instead: reading krb5.conf with its
// includes, keytabs and caches (by parsers that no input brings down), talking to several KDCs, choosing encryption types by
// what a keytab has, tolerating key versions, logging in again in time, and sealing messages.
//
// A Login has no goroutine of its own: it looks after its tickets when one is asked for.
package krb
