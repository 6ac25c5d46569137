package yarnclient

import (
	"context"
	"net/http"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
)

// tokenHeader names the token that is to be renewed or cancelled. It proves nothing about who asks.
const tokenHeader = "Hadoop-YARN-RM-Delegation-Token"

// DelegationToken fetches a token for the ResourceManager, which renewer may renew. It works on a request that Kerberos proves, and on no other.
func (c *Client) DelegationToken(ctx context.Context, renewer string) (token.Token, error) {
	var out struct {
		Token string `json:"token"`
	}
	r := request{what: "get a delegation token of the ResourceManager", method: http.MethodPost, path: "/delegation-token", body: map[string]string{"renewer": renewer}}
	if _, _, _, err := c.do(ctx, r, &out); err != nil {
		return token.Token{}, err
	}
	return token.ParseURLString(out.Token)
}

// RenewToken prolongs a token, which its renewer may, and returns until when.
func (c *Client) RenewToken(ctx context.Context, t token.Token) (time.Time, error) {
	var out struct {
		Expires number `json:"expiration-time"`
	}
	r := request{what: "renew a delegation token of the ResourceManager", method: http.MethodPost, path: "/delegation-token/expiration",
		header: http.Header{tokenHeader: {t.URLString()}}}
	if _, _, _, err := c.do(ctx, r, &out); err != nil {
		return time.Time{}, err
	}
	return millis(out.Expires), nil
}

// CancelToken ends a token.
func (c *Client) CancelToken(ctx context.Context, t token.Token) error {
	_, _, _, err := c.do(ctx, request{what: "cancel a delegation token of the ResourceManager", method: http.MethodDelete, path: "/delegation-token",
		header: http.Header{tokenHeader: {t.URLString()}}}, nil)
	return err
}
