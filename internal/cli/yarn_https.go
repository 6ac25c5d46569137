package cli

import (
	"crypto/tls"
	"slices"

	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/ssl"
)

// openHTTPS finds out how the dashboard is to be served; nil: by HTTP. A key store that YARN gave and that can't be read is an error: the pages would go in clear where
// the cluster wants otherwise.
func (m *yarnMaster) openHTTPS() (*ssl.Master, error) {
	given, err := ssl.OpenMaster(m.s.env.Getenv)
	if err != nil {
		return nil, err
	}
	use, warning := judgeHTTPS(given != nil, m.h.httpsPolicy(), m.h.standaloneProxy())
	if warning != "" {
		m.app.log.Warn(warning)
	}
	if !use {
		return nil, nil
	}
	return given, nil
}

// standaloneProxy is the address of a web proxy that does not run in a ResourceManager; "": there is none.
func (h *hadoop) standaloneProxy() string {
	addr, err := h.conf.Address("yarn.web-proxy.address", 0)
	if err != nil {
		return ""
	}
	rms, err := h.conf.RMs()
	if err != nil || slices.ContainsFunc(rms, func(rm hconf.RM) bool { return addr == rm.Web || addr == rm.WebHTTPS }) {
		return "" // it is the ResourceManager's own
	}
	return addr
}

// judgeHTTPS says whether to serve by HTTPS, and what people are to know of it. A proxy that stands alone knows nothing of the authority that the ResourceManager has for
// ApplicationMasters.
func judgeHTTPS(given bool, policy, alone string) (use bool, warning string) {
	switch {
	case !given && policy == policyStrict:
		return false, "the dashboard is not shown by YARN's web proxy: " + keyHTTPSPolicy + " is STRICT, and YARN gave this container no key store to speak HTTPS with (KEYSTORE_FILE_LOCATION is not set). " +
			"ResourceManager and NodeManagers before Hadoop 3.3 have none, and one whose own configuration says otherwise; commands ask directly"
	case !given:
		return false, ""
	case alone != "" && policy == policyStrict:
		return true, "the dashboard is not shown by the web proxy at " + alone + ": it can't verify the certificates that the ResourceManager gives, and " + keyHTTPSPolicy +
			" is STRICT; the ResourceManager's own proxy could (leave yarn.web-proxy.address unset). Commands ask directly"
	case alone != "":
		return false, "the dashboard is served by HTTP, though YARN gave a certificate: the web proxy at " + alone + " can't verify it. The ResourceManager's own proxy could (leave yarn.web-proxy.address unset)"
	}
	return true, ""
}

// scheme is how the dashboard is served.
func (m *yarnMaster) scheme() string {
	if m.https == nil {
		return "http"
	}
	return "https"
}

// certificate is that of the dashboard; nil: there is none.
func (m *yarnMaster) certificate() *tls.Certificate {
	if m.https == nil {
		return nil
	}
	return &m.https.Certificate
}
