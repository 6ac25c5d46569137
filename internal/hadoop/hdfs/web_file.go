package hdfs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"time"
)

// maxSaid bounds an answer that is small.
const maxSaid = 1 << 20

// decode reads a small answer, which may be empty.
func decode(resp *http.Response, out any) error {
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxSaid))
	if err != nil || len(b) == 0 {
		return err
	}
	if err := json.Unmarshal(b, out); err != nil {
		return answerError{fmt.Errorf("cannot read the answer of %s: %w", resp.Request.URL.Host, err)}
	}
	return nil
}

// open reads a file from an offset on, which is not its end.
func (w *web) open(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	resp, err := w.rest.Do(ctx, w.request(http.MethodGet, "OPEN", name, "offset", strconv.FormatInt(offset, 10)))
	for hops := 0; err == nil && redirects(resp); hops++ {
		_ = resp.Body.Close()
		if hops == maxHops {
			return nil, answerError{errors.New("the file system sends us from one server to another")}
		}
		resp, err = w.rest.Follow(ctx, http.MethodGet, resp.Header.Get("Location"), nil)
	}
	if err != nil {
		return nil, judge(err)
	}
	return resp.Body, nil
}

// maxHops is how often we let servers send us on.
const maxHops = 4

func redirects(resp *http.Response) bool { return resp.StatusCode >= 300 && resp.StatusCode < 400 }

// openWeb opens a file where the reading is to go on.
func (r *Reader) openWeb() error {
	s, err := r.fs.web.status(r.ctx, r.name)
	if err != nil {
		return err
	}
	mod := time.UnixMilli(s.ModificationTime)
	switch {
	case s.Type == "DIRECTORY":
		return fmt.Errorf("%w: %s is a folder", fs.ErrInvalid, r.name)
	case r.size >= 0 && (s.Length != r.size || !mod.Equal(r.mod)):
		return fmt.Errorf("%w: %s was changed while it was read", fs.ErrInvalid, r.name)
	case r.at > s.Length:
		return fmt.Errorf("%w: %s is shorter than it was: %d bytes", fs.ErrInvalid, r.name, s.Length)
	}
	body := io.NopCloser(io.Reader(eof{}))
	if r.at < s.Length {
		if body, err = r.fs.web.open(r.ctx, r.name, r.at); err != nil {
			return err
		}
	}
	r.r, r.size, r.mod = &whole{body, s.Length - r.at}, s.Length, mod
	return nil
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// whole is what a file has left, which must all come.
type whole struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (w *whole) Read(b []byte) (int, error) {
	n, err := w.ReadCloser.Read(b[:min(int64(len(b)), max(w.left, 1))])
	if int64(n) > w.left {
		n, err = int(w.left), io.EOF // it grew meanwhile
	}
	if w.left -= int64(n); err == io.EOF && w.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// webWriter writes a file over HTTP: the first request makes it, each later one appends to it. What is written is kept until there is enough for a request: servers
// hang up where a request's data comes slowly.
type webWriter struct {
	web        *web
	name       string
	perm       fs.FileMode
	replicated bool // where new files would be erasure-coded, which nothing can be appended to

	made bool // the file is there
	buf  []byte
	err  error // of an earlier request
}

// webChunk is web.chunk but in tests.
const webChunk = 16 << 20

// Write implements io.Writer.
func (w *webWriter) Write(b []byte) (done int, err error) {
	for w.err == nil {
		n := min(len(b), w.web.chunk-len(w.buf))
		w.buf = append(w.buf, b[:n]...)
		done += n
		if b = b[n:]; len(b) == 0 {
			break
		}
		w.send()
	}
	return done, w.err
}

// send sends what is kept.
func (w *webWriter) send() {
	ctx := context.Background() // each request has time limits of its own
	method, req := http.MethodPost, w.web.request(http.MethodPost, "APPEND", w.name)
	if !w.made {
		method, req = http.MethodPut, w.web.request(http.MethodPut, "CREATE", w.name, "overwrite", "false", "permission", octal(w.perm))
		if w.replicated {
			req.Query.Set("createflag", "create,should_replicate")
		}
	}
	resp, err := w.web.rest.Do(ctx, req)
	if err == nil {
		_ = resp.Body.Close()
		if redirects(resp) {
			resp, err = w.web.rest.Follow(ctx, method, resp.Header.Get("Location"), bytes.NewReader(w.buf))
			if err == nil {
				_ = resp.Body.Close()
			}
		} else {
			err = errNowhere
		}
		if err == nil && redirects(resp) {
			err = errNowhere
		}
	}
	w.err = judge(err)
	w.made, w.buf = true, w.buf[:0]
}

var errNowhere = answerError{errors.New("the file system does not say where data is to be sent")}

// Flush implements fileWriter.
func (w *webWriter) Flush() error {
	if w.err == nil && len(w.buf) > 0 {
		w.send()
	}
	return w.err
}

// Close implements io.Closer. A file to which nothing was written is there all the same.
func (w *webWriter) Close() error {
	if w.err == nil && (len(w.buf) > 0 || !w.made) {
		w.send()
	}
	return w.err
}

// create makes a file, when there is something to write to it or it is closed.
func (w *web) create(ctx context.Context, name string, perm fs.FileMode) (fileWriter, error) {
	dir, err := w.status(ctx, path.Dir(name))
	if err != nil {
		return nil, err
	}
	return &webWriter{web: w, name: name, perm: perm, replicated: dir.EcBit}, nil
}
