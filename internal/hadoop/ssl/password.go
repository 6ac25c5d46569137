package ssl

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/heddle-stream/heddle/internal/hadoop/jceks"
)

const (
	keyProviders    = "hadoop.security.credential.provider.path"
	keyPasswordFile = "hadoop.security.credstore.java-keystore-provider.password-file"
	envPassword     = "HADOOP_CREDSTORE_PASSWORD"
)

// password returns the password of a key: of a credential store, if one has it, else as the configuration has it in clear. "" comes with an error if there is a
// store that can't be read, where it may be; the password may not be needed.
func (l *loader) password(key string) (string, error) {
	from := l.own
	paths, err := from.List(keyProviders)
	if err == nil && len(paths) == 0 {
		from = l.main
		paths, err = from.List(keyProviders)
	}
	if err != nil {
		return "", err
	}
	var failed []error
	for _, p := range paths {
		all, err := l.provider(p)
		if err != nil {
			failed = append(failed, fmt.Errorf("cannot read the passwords of %s (%s of %s): %w", p, keyProviders, from.Origin(keyProviders), err))
			continue
		}
		if v, ok := all[strings.ToLower(key)]; ok { // as Java's key stores have it
			return v, nil
		}
	}
	if v, err := l.own.String(key); err != nil || v != "" {
		return v, err
	}
	return "", errors.Join(failed...)
}

// provider reads a store of passwords.
func (l *loader) provider(uri string) (map[string]string, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return nil, err
	}
	const fix = "copy it to this host and name it as localjceks://file/path, or put %s into ssl-client.xml"
	switch {
	case u.Scheme != "jceks" && u.Scheme != "localjceks":
		return nil, fmt.Errorf("stores of kind %s cannot be read here: use one of kind localjceks (hadoop credential create … -provider localjceks://file/path), or put the passwords into ssl-client.xml", u.Scheme)
	case u.Host != "file":
		return nil, fmt.Errorf("it is in %s, where a password for TLS cannot be read from: "+fix, u.Host, "the passwords")
	}
	data, err := os.ReadFile(u.Path)
	if err != nil {
		return nil, err
	}
	pw, err := l.storePassword()
	if err != nil {
		return nil, err
	}
	all, err := jceks.Read(data, pw)
	if err != nil {
		return nil, fmt.Errorf("%w; its password is that of %s, else of the file that %s names, else %q", err, envPassword, keyPasswordFile, jceks.NoPassword)
	}
	return all, nil
}

// storePassword is what stores of passwords are protected by.
func (l *loader) storePassword() (string, error) {
	if v, ok := l.main.Env(envPassword); ok && v != "" {
		return v, nil
	}
	for _, c := range []interface {
		String(string) (string, error)
		Path(string) string
	}{l.own, l.main} {
		name, err := c.String(keyPasswordFile)
		if err != nil {
			return "", err
		}
		if name == "" {
			continue
		}
		b, err := os.ReadFile(c.Path(name))
		if err != nil {
			return "", fmt.Errorf("cannot read the file that %s names: %w", keyPasswordFile, err)
		}
		return strings.TrimSpace(string(b)), nil
	}
	return jceks.NoPassword, nil
}
