package krb

import (
	"slices"
	"strings"

	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
)

// Encryption types that can be used, strongest first. Those of RFC 8009 come after the usual ones, as MIT orders them.
const (
	aes256SHA1 int32 = etypeID.AES256_CTS_HMAC_SHA1_96
	aes128SHA1 int32 = etypeID.AES128_CTS_HMAC_SHA1_96
	aes256SHA2 int32 = etypeID.AES256_CTS_HMAC_SHA384_192
	aes128SHA2 int32 = etypeID.AES128_CTS_HMAC_SHA256_128
	des3       int32 = etypeID.DES3_CBC_SHA1_KD
	rc4        int32 = etypeID.RC4_HMAC
)

var enctypes = []int32{aes256SHA1, aes128SHA1, aes256SHA2, aes128SHA2, des3, rc4}

// sealing are the types whose keys can protect messages of a GSSAPI context here.
var sealing = []int32{aes256SHA1, aes128SHA1, aes256SHA2, aes128SHA2}

var enctypeNames = map[string]int32{
	"aes256-cts-hmac-sha1-96": aes256SHA1, "aes256-cts": aes256SHA1, "aes256-sha1": aes256SHA1,
	"aes128-cts-hmac-sha1-96": aes128SHA1, "aes128-cts": aes128SHA1, "aes128-sha1": aes128SHA1,
	"aes256-cts-hmac-sha384-192": aes256SHA2, "aes256-sha2": aes256SHA2,
	"aes128-cts-hmac-sha256-128": aes128SHA2, "aes128-sha2": aes128SHA2,
	"des3-cbc-sha1": des3, "des3-hmac-sha1": des3, "des3-cbc-sha1-kd": des3,
	"arcfour-hmac": rc4, "rc4-hmac": rc4, "arcfour-hmac-md5": rc4,
}

var enctypeFamilies = map[string][]int32{"aes": sealing, "des3": {des3}, "rc4": {rc4}, "default": enctypes}

// EnctypeName is an encryption type's usual name.
func EnctypeName(id int32) string {
	switch id {
	case aes256SHA1:
		return "aes256-cts-hmac-sha1-96"
	case aes128SHA1:
		return "aes128-cts-hmac-sha1-96"
	case aes256SHA2:
		return "aes256-cts-hmac-sha384-192"
	case aes128SHA2:
		return "aes128-cts-hmac-sha256-128"
	case des3:
		return "des3-cbc-sha1"
	case rc4:
		return "arcfour-hmac"
	case 1, 2, 3:
		return "des"
	}
	return "encryption type " + itoa(id)
}

func enctypeList(ids []int32) string {
	var names []string
	for _, id := range ids {
		names = append(names, EnctypeName(id))
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// parseEnctypes reads a list such as "aes256-cts aes -rc4". What is not known is left out.
func parseEnctypes(s string) []int32 {
	var out []int32
	for _, w := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return r == ' ' || r == ',' || r == '\t' }) {
		remove := strings.HasPrefix(w, "-")
		w = strings.TrimLeft(w, "+-")
		ids := enctypeFamilies[w]
		if id, ok := enctypeNames[w]; ok {
			ids = []int32{id}
		}
		for _, id := range ids {
			if remove {
				out = slices.DeleteFunc(out, func(x int32) bool { return x == id })
			} else if !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	return out
}

// both returns the elements of a that b has too.
func both(a, b []int32) []int32 {
	var out []int32
	for _, x := range a {
		if slices.Contains(b, x) {
			out = append(out, x)
		}
	}
	return out
}
