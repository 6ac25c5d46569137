package pki

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// agentScheme is that of the URI which names an agent in its certificate.
const agentScheme = "heddle-agent"

// Name is whom an agent's certificate is made out to: an agent of one attempt of one application, in one container.
type Name struct {
	App       string
	Attempt   uint32 // of the ApplicationMaster that made the certificate
	Agent     cluster.AgentID
	Container cluster.ContainerID
}

// uri is the name as it stands in the certificate: heddle-agent:APP/ATTEMPT/CONTAINER/AGENT.
func (n Name) uri() *url.URL {
	return &url.URL{Scheme: agentScheme, Opaque: strings.Join([]string{
		url.PathEscape(n.App), strconv.FormatUint(uint64(n.Attempt), 10), url.PathEscape(string(n.Container)), url.PathEscape(string(n.Agent))}, "/")}
}

// NameOf returns whom a certificate was made out to by Authority.Agent. It does not verify: TLS did.
func NameOf(cert *x509.Certificate) (Name, error) {
	for _, u := range cert.URIs {
		if u.Scheme != agentScheme {
			continue
		}
		n, err := parseName(u.Opaque)
		if err != nil {
			return Name{}, fmt.Errorf("cannot read the agent's name in its certificate: %q", u)
		}
		return n, nil
	}
	return Name{}, fmt.Errorf("the certificate of %q names no agent", cert.Subject.CommonName)
}

func parseName(text string) (n Name, err error) {
	part := strings.Split(text, "/")
	if len(part) != 4 {
		return n, errors.New("it has not four parts")
	}
	attempt, err := strconv.ParseUint(part[1], 10, 32)
	if err != nil {
		return n, err
	}
	for _, i := range []int{0, 2, 3} {
		if part[i], err = url.PathUnescape(part[i]); err != nil {
			return n, err
		}
	}
	n = Name{App: part[0], Attempt: uint32(attempt), Container: cluster.ContainerID(part[2]), Agent: cluster.AgentID(part[3])}
	if n.Agent == "" || n.App == "" {
		return n, errors.New("it names no agent, or no application")
	}
	return n, nil
}
