package ssl

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/heddle-stream/heddle/internal/certstore"
)

// Variables by which a NodeManager tells an ApplicationMaster what to serve its pages with, where yarn.resourcemanager.application-https.policy is
// LENIENT or STRICT (Hadoop's ApplicationConstants).
const (
	envKeyFile       = "KEYSTORE_FILE_LOCATION"
	envKeyPassword   = "KEYSTORE_PASSWORD"
	envTrustFile     = "TRUSTSTORE_FILE_LOCATION"
	envTrustPassword = "TRUSTSTORE_PASSWORD"
)

// MasterSecrets begins the names under which YARN has the same in the credentials of an ApplicationMaster's container (AMSecretKeys). They are nobody else's.
const MasterSecrets = "yarn.application.am."

// Master is what YARN gives an ApplicationMaster to serve its pages with. Nobody but the ResourceManager's web proxy, which made it, can verify the certificate: it names
// the application in place of a host, and ends when it begins.
type Master struct {
	Certificate tls.Certificate
	Proxy       []*x509.Certificate // that of the proxy is one of them
}

// OpenMaster reads what YARN gave to this container; nil: nothing.
func OpenMaster(getenv func(string) string) (*Master, error) {
	if getenv(envKeyFile) == "" {
		return nil, nil
	}
	m := &Master{}
	err := given(getenv, envKeyFile, envKeyPassword, "key store", func(data []byte, password string) (err error) {
		m.Certificate, err = certstore.Key(data, "", password, "")
		return err
	})
	if err != nil {
		return nil, err
	}
	err = given(getenv, envTrustFile, envTrustPassword, "trust store", func(data []byte, password string) (err error) {
		m.Proxy, err = certstore.Trust(data, "", password)
		return err
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// given reads a store that variables name.
func given(getenv func(string) string, location, password, what string, read func(data []byte, password string) error) error {
	file := getenv(location)
	if file == "" {
		return fmt.Errorf("cannot serve HTTPS: YARN gave this container a key store and no %s (%s is not set)", what, location)
	}
	data, err := os.ReadFile(file)
	if err == nil && getenv(password) == "" {
		err = errors.New(password + " is not set")
	}
	if err == nil {
		err = read(data, getenv(password))
	}
	if err != nil {
		return fmt.Errorf("cannot read the %s %s, which YARN gave this container for HTTPS (%s): %w", what, file, location, err)
	}
	return nil
}
