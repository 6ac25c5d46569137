package cli

import "github.com/heddle-stream/heddle/conf"

// encrypt has agents encrypt records on a cluster that demands Kerberos, unless the option says otherwise.
func (h *hadoop) encrypt(c *conf.Config) error {
	secure, err := h.conf.Kerberos()
	if err != nil {
		return precondition(err)
	}
	if !secure || given(c, "exchange.tls") {
		return nil
	}
	return c.Set("exchange.tls", "true", conf.FromFile, "core-site.xml")
}

// inClear is what there is to say of records that are not encrypted on a cluster that demands Kerberos; "": nothing.
func (h *hadoop) inClear(c *conf.Config) string {
	secure, err := h.conf.Kerberos()
	if err != nil || !secure || c.Bool("exchange.tls") {
		return ""
	}
	return "exchange.tls is off on a cluster that demands Kerberos: records go between hosts unencrypted, and whoever listens there can read them"
}
