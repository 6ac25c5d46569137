// Package nettest tests the exchange between two hosts: two network namespaces, each with a process of its own, joined by a
// link that loses, delays, reorders, cuts and forges what it carries. It needs root and iproute2.
package nettest
