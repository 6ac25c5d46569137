package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hrest"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
)

// Web is a service that speaks for a file system over HTTP: WebHDFS of its NameNodes, HttpFS, or Knox. It does what is special about a file, such as encryption,
// by itself.
type Web = hrest.Config

// web is a file system over HTTP.
type web struct {
	rest  *hrest.Client
	where string // for people
	chunk int    // what a request carries at most when a file is written
}

func newWeb(cfg hrest.Config) (*web, error) {
	rest, err := hrest.New(cfg)
	if err != nil {
		return nil, err
	}
	w := &web{rest: rest, chunk: webChunk}
	for i, b := range cfg.Bases {
		if i > 0 {
			w.where += " or "
		}
		u, err := url.Parse(b)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, errors.New("cannot use HDFS over HTTP: its address is no http: or https: URL")
		}
		w.where += u.Scheme + "://" + u.Host + u.Path
	}
	return w, nil
}

// answerError is an answer of the service's that another try won't better.
type answerError struct{ error }

func (e answerError) Unwrap() error { return e.error }

// judge makes errors of the service those of package fs.
func judge(err error) error {
	switch hrpc.ClassOf(err) {
	case "":
		if s, ok := errors.AsType[*hrest.StatusError](err); ok && s.Status < 500 {
			if s.Status == http.StatusUnauthorized || s.Status == http.StatusForbidden {
				err = fmt.Errorf("%w: %w", fs.ErrPermission, err)
			}
			return answerError{err}
		}
		return err
	case "org.apache.hadoop.fs.FileAlreadyExistsException", "FileAlreadyExistsException":
		return fmt.Errorf("%w: %w", fs.ErrExist, err)
	case "FileNotFoundException":
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	case "AccessControlException":
		return fmt.Errorf("%w: %w", fs.ErrPermission, err)
	}
	return answerError{known(err)}
}

// unsupported reports whether a service does not know what it was asked for, as HttpFS does not know all that WebHDFS does, nor older versions.
func unsupported(err error) bool {
	if s, ok := errors.AsType[*hrest.StatusError](err); ok {
		return s.Status == http.StatusBadRequest || s.Status == http.StatusMethodNotAllowed || s.Status == http.StatusNotImplemented
	}
	class := hrpc.ClassOf(err)
	class = class[strings.LastIndexAny(class, ".$")+1:]
	return slices.Contains([]string{"IllegalArgumentException", "UnsupportedOperationException", "QueryParamException"}, class)
}

// escaped is a path as it is put behind a base.
func escaped(name string) string {
	parts := strings.Split(path.Clean("/"+name), "/")
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(url.PathEscape(p), "+", "%2B") // which some servers take for a blank
	}
	return strings.Join(parts, "/")
}

// params are a request's beside op: name, value, name, value, ….
func (w *web) request(method, op, name string, params ...string) hrest.Request {
	q := url.Values{"op": {op}}
	for i := 0; i+1 < len(params); i += 2 {
		q.Set(params[i], params[i+1])
	}
	return hrest.Request{Method: method, Path: escaped(name), Query: q}
}

func (w *web) call(ctx context.Context, out any, method, op, name string, params ...string) error {
	return judge(w.rest.JSON(ctx, w.request(method, op, name, params...), out))
}

// webStatus is a file as the service describes it.
type webStatus struct {
	PathSuffix, Owner, Group, Type, Permission string
	Length, BlockSize, ModificationTime        int64
	EncBit, EcBit                              bool
	EcPolicy                                   string
}

func (s *webStatus) info(name string) Info {
	perm, _ := strconv.ParseUint(s.Permission, 8, 32)
	return Info{Path: name, Size: s.Length, Modified: time.UnixMilli(s.ModificationTime), Mode: fs.FileMode(perm).Perm(), Owner: s.Owner, Group: s.Group, Dir: s.Type == "DIRECTORY", Block: s.BlockSize}
}

func (w *web) status(ctx context.Context, name string) (webStatus, error) {
	var j struct{ FileStatus webStatus }
	err := w.call(ctx, &j, http.MethodGet, "GETFILESTATUS", name)
	return j.FileStatus, err
}

func (w *web) list(ctx context.Context, dir string) ([]Info, error) {
	var j struct {
		FileStatuses struct{ FileStatus []webStatus }
	}
	if err := w.call(ctx, &j, http.MethodGet, "LISTSTATUS", dir); err != nil {
		return nil, err
	}
	var out []Info
	for _, s := range j.FileStatuses.FileStatus {
		out = append(out, s.info(path.Join(dir, s.PathSuffix)))
	}
	slices.SortFunc(out, func(a, b Info) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// boolean is the answer to what may have been of no effect.
type boolean struct{ Boolean *bool }

func (b boolean) no() bool { return b.Boolean != nil && !*b.Boolean }

func (w *web) mkdirAll(ctx context.Context, dir string, perm fs.FileMode) error {
	var done boolean
	err := w.call(ctx, &done, http.MethodPut, "MKDIRS", dir, "permission", octal(perm))
	if err == nil && done.no() {
		err = answerError{errors.New("the file system did not make it")}
	}
	return err
}

func octal(perm fs.FileMode) string { return strconv.FormatUint(uint64(perm), 8) }

func (w *web) remove(ctx context.Context, name string) error {
	err := w.call(ctx, nil, http.MethodDelete, "DELETE", name, "recursive", "true")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// rename renames a file. HttpFS does not know renameoptions and answers a false where there is a file of the new name: that one is removed then, and for a moment
// there is none.
func (w *web) rename(ctx context.Context, from, to string, replace bool) error {
	how := "NONE"
	if replace {
		how = "OVERWRITE"
	}
	for try := 0; ; try++ {
		done, err := w.renameOnce(ctx, from, to, how)
		if err != nil || done {
			return err
		}
		_, err = w.status(ctx, to)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("cannot rename %s: %w", from, fs.ErrNotExist)
		case err != nil:
			return err
		case !replace:
			return fs.ErrExist
		case try > 0:
			return answerError{fmt.Errorf("cannot rename %s: the file system would not put it in the place of %s", from, to)}
		}
		if err := w.remove(ctx, to); err != nil {
			return err
		}
	}
}

func (w *web) renameOnce(ctx context.Context, from, to, how string) (bool, error) {
	resp, err := w.rest.Do(ctx, w.request(http.MethodPut, "RENAME", from, "destination", path.Clean(to), "renameoptions", how))
	if err != nil {
		return false, judge(err)
	}
	defer resp.Body.Close()
	var done boolean
	err = decode(resp, &done) // WebHDFS says nothing
	return err == nil && !done.no(), err
}

// access asks whether we may do something; where the service can't be asked, it remains to be seen.
func (w *web) access(ctx context.Context, name string, a Access) error {
	err := w.call(ctx, nil, http.MethodGet, "CHECKACCESS", name, "fsaction", a.String())
	if unsupported(err) {
		_, err = w.status(ctx, name)
	}
	return err
}

func (w *web) quota(ctx context.Context, dir string) (QuotaUsage, error) {
	var j struct {
		QuotaUsage struct{ FileAndDirectoryCount, Quota, SpaceConsumed, SpaceQuota int64 }
	}
	err := w.call(ctx, &j, http.MethodGet, "GETQUOTAUSAGE", dir)
	u := j.QuotaUsage
	return QuotaUsage{Names: u.FileAndDirectoryCount, NamesQuota: max(0, u.Quota), Space: u.SpaceConsumed, SpaceQuota: max(0, u.SpaceQuota)}, err
}

// blocks tells where a file is kept, nothing where the service does not know.
func (w *web) blocks(ctx context.Context, name string) ([]Block, error) {
	var j struct {
		BlockLocations struct {
			BlockLocation []struct {
				Hosts          []string
				Offset, Length int64
				Corrupt        bool
			}
		}
	}
	err := w.call(ctx, &j, http.MethodGet, "GETFILEBLOCKLOCATIONS", name)
	if unsupported(err) {
		return nil, nil
	}
	var out []Block
	for _, b := range j.BlockLocations.BlockLocation {
		at := Block{From: b.Offset, To: b.Offset + b.Length, Hosts: b.Hosts}
		if b.Corrupt {
			at.Hosts = nil
		}
		if b.Offset < 0 || b.Length < 0 || at.To < at.From {
			return nil, answerError{fmt.Errorf("the file system tells of %d bytes at %d", b.Length, b.Offset)}
		}
		out = append(out, at)
	}
	return out, err
}

// place looks at a folder, or the nearest above it that is there.
func (w *web) place(ctx context.Context, dir string) (Place, error) {
	var p Place
	for p.Dir = dir; ; p.Dir = path.Dir(p.Dir) {
		s, err := w.status(ctx, p.Dir)
		if errors.Is(err, fs.ErrNotExist) && p.Dir != "/" {
			continue
		}
		if err != nil {
			return p, err
		}
		p.Encrypted, p.Coded = s.EncBit, s.EcPolicy
		if s.EcBit && p.Coded == "" {
			p.Coded = "some policy"
		}
		break
	}
	var j struct {
		FsServerDefaults struct{ Replication, BlockSize int64 }
	}
	err := w.call(ctx, &j, http.MethodGet, "GETSERVERDEFAULTS", "/")
	if p.Block = j.FsServerDefaults.Replication * j.FsServerDefaults.BlockSize; unsupported(err) {
		err = nil
	}
	return p, err
}
