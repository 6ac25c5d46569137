package kafka

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// parseProperties reads a file in Java's notation for properties, as Kafka's own clients are configured by.
func parseProperties(text string) (map[string]string, error) {
	out := map[string]string{}
	lines := strings.Split(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		at := i + 1
		line := strings.TrimLeft(lines[i], " \t\f")
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		for continued(line) && i+1 < len(lines) {
			i++
			line = line[:len(line)-1] + strings.TrimLeft(lines[i], " \t\f")
		}
		key, value, err := property(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", at, err)
		}
		out[key] = value
	}
	return out, nil
}

// continued reports whether a line ends in a backslash that is not itself escaped.
func continued(line string) bool {
	n := len(line) - len(strings.TrimRight(line, `\`))
	return n%2 == 1
}

// property splits a line at the first =, : or space that is not escaped.
func property(line string) (key, value string, err error) {
	end := len(line)
	for i := 0; i < len(line); i++ {
		if line[i] == '\\' {
			i++
		} else if strings.IndexByte("=: \t\f", line[i]) >= 0 {
			end = i
			break
		}
	}
	rest := strings.TrimLeft(line[end:], " \t\f")
	if rest != "" && (rest[0] == '=' || rest[0] == ':') {
		rest = strings.TrimLeft(rest[1:], " \t\f")
	}
	if key, err = unescape(line[:end]); err != nil {
		return "", "", err
	}
	value, err = unescape(rest)
	return key, value, err
}

func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 't':
			b.WriteByte('\t')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			if i+4 >= len(s) {
				return "", fmt.Errorf("an escape \\u needs four digits")
			}
			n, err := strconv.ParseUint(s[i+1:i+5], 16, 16)
			if err != nil {
				return "", fmt.Errorf("an escape \\u needs four hexadecimal digits")
			}
			b.WriteRune(rune(n))
			i += 4
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			b.WriteRune(r)
			i += n - 1
		}
	}
	return b.String(), nil
}

// propertyOptions says which option a property of Kafka's is.
var propertyOptions = map[string]string{
	"bootstrap.servers":                     OptBrokers,
	"client.id":                             OptClientID,
	"client.rack":                           OptRack,
	"sasl.mechanism":                        OptSASLMechanism,
	"sasl.oauthbearer.token.endpoint.url":   OptOAuthURL,
	"sasl.oauthbearer.scope":                OptOAuthScope,
	"sasl.kerberos.service.name":            OptKerberosService,
	"ssl.truststore.location":               OptTLSTruststore,
	"ssl.truststore.password":               OptTLSTruststorePassword,
	"ssl.keystore.location":                 OptTLSKeystore,
	"ssl.keystore.password":                 OptTLSKeystorePassword,
	"ssl.key.password":                      OptTLSKeyPassword,
	"ssl.truststore.certificates":           propCertificates,
	"ssl.keystore.certificate.chain":        propChain,
	"ssl.keystore.key":                      propKey,
	"ssl.endpoint.identification.algorithm": propIdentification,
	"ssl.truststore.type":                   propTrustType,
	"ssl.keystore.type":                     propKeyType,
}

// Names by which settings that have no option are passed on.
const (
	propCertificates   = "ssl.truststore.certificates"
	propChain          = "ssl.keystore.certificate.chain"
	propKey            = "ssl.keystore.key"
	propIdentification = "ssl.endpoint.identification.algorithm"
	propTrustType      = "ssl.truststore.type"
	propKeyType        = "ssl.keystore.type"
)

// harmless are properties about security that ask for nothing we don't do anyway, with the values for which that is so; none: any.
var harmless = map[string][]string{
	"ssl.protocol":                             {"TLS", "TLSv1.2", "TLSv1.3"},
	"ssl.enabled.protocols":                    {"TLSv1.2", "TLSv1.3", "TLSv1.2,TLSv1.3", "TLSv1.3,TLSv1.2"},
	"ssl.provider":                             {""},
	"ssl.trustmanager.algorithm":               {"PKIX", "SunX509"},
	"ssl.keymanager.algorithm":                 {"PKIX", "SunX509"},
	"ssl.secure.random.implementation":         nil,
	"sasl.login.callback.handler.class":        {"", "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler", "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler"},
	"sasl.login.connect.timeout.ms":            nil,
	"sasl.login.read.timeout.ms":               nil,
	"sasl.login.retry.backoff.ms":              nil,
	"sasl.login.retry.backoff.max.ms":          nil,
	"sasl.login.refresh.window.factor":         nil,
	"sasl.login.refresh.window.jitter":         nil,
	"sasl.login.refresh.min.period.seconds":    nil,
	"sasl.login.refresh.buffer.seconds":        nil,
	"sasl.kerberos.kinit.cmd":                  nil,
	"sasl.kerberos.ticket.renew.window.factor": nil,
	"sasl.kerberos.ticket.renew.jitter":        nil,
	"sasl.kerberos.min.time.before.relogin":    nil,
}

// fromProperties turns Kafka's properties into options. What is about security and not understood is refused by name; what else a file holds,
// such as settings of consumers, is none of ours.
func fromProperties(props map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(props)) {
		value := strings.TrimSpace(props[name])
		if opt, ok := propertyOptions[name]; ok {
			out[opt] = value
			continue
		}
		switch name {
		case "security.protocol":
			tls, ok := map[string]string{"PLAINTEXT": "false", "SASL_PLAINTEXT": "false", "SSL": "true", "SASL_SSL": "true"}[strings.ToUpper(value)]
			if !ok {
				return nil, fmt.Errorf("security.protocol is %q: want PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL", value)
			}
			out[OptTLSEnabled] = tls
			continue
		case "sasl.jaas.config":
			continue // below, when the mechanism is known
		}
		values, ok := harmless[name]
		if ok && (values == nil || slices.Contains(values, strings.ReplaceAll(value, " ", ""))) {
			continue
		}
		for _, prefix := range []string{"ssl.", "sasl.", "security."} {
			if strings.HasPrefix(name, prefix) {
				return nil, fmt.Errorf("the property %s can't be honoured", name)
			}
		}
	}
	return out, settle(props, out)
}

// settle drops what the security protocol makes void, and takes in the JAAS configuration.
func settle(props, out map[string]string) error {
	protocol := strings.ToUpper(strings.TrimSpace(props["security.protocol"]))
	if !strings.HasPrefix(protocol, "SASL") {
		delete(out, OptSASLMechanism)
	} else {
		if out[OptSASLMechanism] == "" {
			out[OptSASLMechanism] = "GSSAPI" // Kafka's default
		}
		if text := props["sasl.jaas.config"]; text != "" {
			if err := fromJAAS(text, out); err != nil {
				return fmt.Errorf("cannot use sasl.jaas.config: %w", err)
			}
		}
	}
	if out[OptTLSEnabled] != "true" {
		for name := range out {
			if strings.HasPrefix(name, "kafka.tls.") && name != OptTLSEnabled || strings.HasPrefix(name, "ssl.") {
				delete(out, name)
			}
		}
	}
	return nil
}

// fromJAAS reads one login module with its options. It never shows their values.
func fromJAAS(text string, out map[string]string) error {
	words, err := jaasWords(text)
	if err != nil {
		return err
	}
	if len(words) < 2 {
		return fmt.Errorf("want a login module, a flag such as required, and options")
	}
	module := words[0][strings.LastIndexByte(words[0], '.')+1:]
	known, ok := jaasOptions[module]
	if !ok {
		return fmt.Errorf("login module %s is not known: want PlainLoginModule, ScramLoginModule, OAuthBearerLoginModule or Krb5LoginModule", words[0])
	}
	for _, w := range words[2:] {
		name, value, ok := strings.Cut(w, "=")
		if !ok {
			return fmt.Errorf("an option of %s has no value", module)
		}
		switch opt, ok := known[name]; {
		case !ok:
			return fmt.Errorf("the option %s of %s can't be honoured", name, module)
		case opt != "":
			out[opt] = value
		}
	}
	return nil
}

// jaasOptions says which options the options of login modules are; "": nothing needs to be done for it.
var jaasOptions = map[string]map[string]string{
	"PlainLoginModule":       {"username": OptSASLUser, "password": OptSASLPassword},
	"ScramLoginModule":       {"username": OptSASLUser, "password": OptSASLPassword},
	"OAuthBearerLoginModule": {"clientId": OptOAuthClientID, "clientSecret": OptOAuthClientSecret, "scope": OptOAuthScope},
	"Krb5LoginModule": {"keyTab": OptKerberosKeytab, "principal": OptKerberosPrincipal, "ticketCache": OptKerberosCache, "serviceName": OptKerberosService,
		"useKeyTab": "", "storeKey": "", "useTicketCache": "", "doNotPrompt": "", "debug": "", "renewTGT": "", "refreshKrb5Config": "", "isInitiator": ""},
}

// jaasWords splits a JAAS configuration at spaces outside of quotes, up to its semicolon.
func jaasWords(text string) (words []string, err error) {
	var w strings.Builder
	quote, any := byte(0), false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0 && c == '\\' && i+1 < len(text):
			i++
			w.WriteByte(text[i])
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			w.WriteByte(c)
		case c == '"' || c == '\'':
			quote, any = c, true
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ';':
			if w.Len() > 0 || any {
				words = append(words, w.String())
			}
			w.Reset()
			if any = false; c == ';' {
				if rest := strings.TrimSpace(text[i+1:]); rest != "" {
					return nil, fmt.Errorf("only one login module is possible")
				}
				return words, nil
			}
		default:
			w.WriteByte(c)
		}
	}
	return nil, fmt.Errorf("it does not end in a semicolon")
}
