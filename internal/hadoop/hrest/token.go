package hrest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
)

// Token fetches a delegation token at a path, which renewer may renew. Its service is left to the caller. A service without security gives none.
func (c *Client) Token(ctx context.Context, path, renewer string) (t token.Token, ok bool, err error) {
	var j struct {
		Token *struct {
			URLString string `json:"urlString"`
		}
	}
	q := url.Values{"op": {"GETDELEGATIONTOKEN"}, "renewer": {renewer}}
	if err := c.JSON(ctx, Request{Method: http.MethodGet, Path: path, Query: q}, &j); err != nil {
		return t, false, err
	}
	if j.Token == nil {
		return t, false, nil
	}
	if t, err = token.ParseURLString(j.Token.URLString); err != nil {
		return t, false, err
	}
	if len(t.Identifier) == 0 || len(t.Password) == 0 {
		return t, false, errors.New("cannot use what the server calls a delegation token: it is empty")
	}
	return t, true, nil
}

// Renew prolongs a token, which its renewer may, and returns until when.
func (c *Client) Renew(ctx context.Context, path string, t token.Token) (time.Time, error) {
	var j struct{ Long int64 }
	q := url.Values{"op": {"RENEWDELEGATIONTOKEN"}, "token": {t.URLString()}}
	if err := c.JSON(ctx, Request{Method: http.MethodPut, Path: path, Query: q}, &j); err != nil {
		return time.Time{}, fmt.Errorf("cannot renew the token %v: %w", t, err)
	}
	return time.UnixMilli(j.Long), nil
}

// Cancel ends a token.
func (c *Client) Cancel(ctx context.Context, path string, t token.Token) error {
	q := url.Values{"op": {"CANCELDELEGATIONTOKEN"}, "token": {t.URLString()}}
	if err := c.JSON(ctx, Request{Method: http.MethodPut, Path: path, Query: q}, nil); err != nil {
		return fmt.Errorf("cannot cancel the token %v: %w", t, err)
	}
	return nil
}
