package appmaster

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/heddle-stream/heddle/internal/ctl/pki"
)

// Keys are the secrets of an application by which its processes know each other.
type Keys struct {
	authority *pki.Authority
	exchange  []byte
}

// NewKeys makes the keys of an application.
func NewKeys(app string) (*Keys, error) {
	authority, err := pki.NewAuthority(app)
	if err != nil {
		return nil, err
	}
	return &Keys{authority, pki.NewExchangeKey()}, nil
}

// keysFile is the form in which keys are handed on.
type keysFile struct {
	Authority string `json:"authority"`
	Exchange  []byte `json:"exchange"`
}

// Marshal is the keys for a later attempt. Whoever has that can do all that the ApplicationMaster can.
func (k *Keys) Marshal() ([]byte, error) {
	pem, err := k.authority.MarshalPEM()
	if err != nil {
		return nil, err
	}
	return json.Marshal(keysFile{string(pem), k.exchange})
}

// ParseKeys reads what Marshal wrote. Its errors show no key.
func ParseKeys(data []byte) (*Keys, error) {
	var f keysFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, errors.New("cannot read the application's keys: they are not what an earlier attempt wrote")
	}
	if len(f.Exchange) != pki.ExchangeKeySize {
		return nil, fmt.Errorf("cannot use the application's keys: that of the exchange has %d bytes, want %d", len(f.Exchange), pki.ExchangeKeySize)
	}
	authority, err := pki.ParseAuthority([]byte(f.Authority))
	if err != nil {
		return nil, err
	}
	return &Keys{authority, f.Exchange}, nil
}
