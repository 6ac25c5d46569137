package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// OAuth says where tokens come from: a file that somebody else keeps fresh, or the token endpoint of an identity provider.
type OAuth struct {
	TokenFile    string
	URL          string // token endpoint, for the grant of client credentials
	ClientID     string
	ClientSecret Secret
	Scope        string
	CAFile       string // whom to trust at URL; "": what the system trusts
}

func (o *OAuth) validate() error {
	switch {
	case o.TokenFile != "" && o.URL != "":
		return fmt.Errorf("both %s and %s are set: tokens can come from one of them", OptOAuthTokenFile, OptOAuthURL)
	case o.TokenFile != "":
		return nil
	case o.URL == "":
		return fmt.Errorf("%s is OAUTHBEARER but nothing says where tokens come from: set %s or %s", OptSASLMechanism, OptOAuthTokenFile, OptOAuthURL)
	case o.ClientID == "" || o.ClientSecret == "":
		return fmt.Errorf("%s needs %s, and %s or %s-file", OptOAuthURL, OptOAuthClientID, OptOAuthClientSecret, OptOAuthClientSecret)
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return fmt.Errorf("%s is %q: want the https URL of a token endpoint", OptOAuthURL, o.URL)
	}
	if h := u.Hostname(); u.Scheme == "http" && h != "localhost" && h != "127.0.0.1" && h != "::1" {
		return fmt.Errorf("%s is %q: a secret goes there, so it must be https", OptOAuthURL, o.URL)
	}
	return nil
}

// tokens gives sarama tokens. Many connections ask; one request serves them while its token is good.
type tokens struct {
	oauth  OAuth
	client *http.Client

	mu    sync.Mutex
	token string    // guarded by mu: "": none
	until time.Time // guarded by mu: when to ask for another
}

func newTokens(o OAuth) (*tokens, error) {
	t := &tokens{oauth: o}
	if o.TokenFile != "" {
		return t, nil
	}
	// It is asked now and then: no connection waits for that.
	tr := &http.Transport{Proxy: nil, DisableKeepAlives: true, TLSHandshakeTimeout: 10 * time.Second}
	if o.CAFile != "" {
		cfg, err := TLS{Enabled: true, CAFile: o.CAFile}.load()
		if err != nil {
			return nil, err
		}
		tr.TLSClientConfig = cfg
	}
	t.client = &http.Client{Transport: tr, Timeout: 10 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("the token endpoint redirects, which would take the secret elsewhere")
	}}
	return t, nil
}

// Token implements sarama.AccessTokenProvider.
func (t *tokens) Token() (*sarama.AccessToken, error) { return t.get(context.Background()) }

// tokensWithin are tokens for one connection: nobody waits for one when ctx has ended.
type tokensWithin struct {
	t   *tokens
	ctx context.Context // of the call that opens the connection
}

// Token implements sarama.AccessTokenProvider.
func (t tokensWithin) Token() (*sarama.AccessToken, error) { return t.t.get(t.ctx) }

// get returns a token, and asks for one if need be, bounded by ctx and the client's timeout.
func (t *tokens) get(ctx context.Context) (*sarama.AccessToken, error) {
	if t.oauth.TokenFile != "" {
		b, err := os.ReadFile(t.oauth.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", OptOAuthTokenFile, err)
		}
		token := strings.TrimSpace(string(b))
		if token == "" {
			return nil, fmt.Errorf("%s %s is empty", OptOAuthTokenFile, t.oauth.TokenFile)
		}
		return &sarama.AccessToken{Token: token}, nil
	}
	now := time.Now()
	t.mu.Lock()
	token, until := t.token, t.until
	t.mu.Unlock()
	if token != "" && now.Before(until) {
		return &sarama.AccessToken{Token: token}, nil
	}
	fresh, life, err := t.ask(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot get a token of %s: %w", t.oauth.URL, err)
	}
	t.mu.Lock()
	t.token, t.until = fresh, now.Add(life*8/10)
	t.mu.Unlock()
	return &sarama.AccessToken{Token: fresh}, nil
}

// ask asks the endpoint. Its errors show neither secret nor token.
func (t *tokens) ask(ctx context.Context) (token string, life time.Duration, err error) {
	form := url.Values{"grant_type": {"client_credentials"}}
	if t.oauth.Scope != "" {
		form.Set("scope", t.oauth.Scope)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.oauth.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return "", 0, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	req.SetBasicAuth(url.QueryEscape(t.oauth.ClientID), url.QueryEscape(string(t.oauth.ClientSecret)))
	resp, err := t.client.Do(req)
	if err != nil {
		return "", 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return "", 0, err
	}
	var answer struct {
		Token   string  `json:"access_token"`
		Life    float64 `json:"expires_in"`
		Err     string  `json:"error"`
		ErrText string  `json:"error_description"`
	}
	jsonErr := json.Unmarshal(body, &answer)
	switch {
	case resp.StatusCode != http.StatusOK && answer.Err != "":
		return "", 0, fmt.Errorf("%s: %s %s", resp.Status, answer.Err, answer.ErrText)
	case resp.StatusCode != http.StatusOK:
		return "", 0, errors.New(resp.Status)
	case jsonErr != nil || answer.Token == "":
		return "", 0, errors.New("the answer holds no access_token")
	}
	return answer.Token, time.Duration(min(max(answer.Life, 0), 86400) * float64(time.Second)), nil
}
