// Package hdfs stores and reads files in HDFS: colinmarc/hdfs with what it leaves out. Connections have time limits, a
// write that loses its DataNode or NameNode is done anew, a file appears under its name only when it is whole, and never in the place of another.
package hdfs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/colinmarc/hdfs/v2"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrest"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
)

// protocol is the name of the NameNodes' protocol.
const protocol = "org.apache.hadoop.hdfs.protocol.ClientProtocol"

// Config is what a file system needs to know.
type Config struct {
	NameNodes []string // host:port of their RPC, as hconf.FileSystem has them
	User      string   // who we are; clusters without security believe it
	// Timeout bounds every read and write of a connection; 0: 30 s.
	Timeout time.Duration
	// Attempts is how often an upload is tried; 0: 4.
	Attempts int
	// DatanodeHostname dials DataNodes by name, not address.
	DatanodeHostname bool
	// Security is the cluster's.
	Security Security
	// Keys finds the server that opens the keys of files in encryption zones. advertised is what the NameNode says of it, "" if nothing. No server and no error:
	// none is known. Keys nil: likewise.
	Keys func(advertised string) (KeyServer, error)
	// Web finds the service by which the file system of these NameNodes is spoken to over HTTP, in place of RPC and data transfer; nil, or no Bases: by none.
	Web func(nameNodes []string) (Web, error)
	// Dial connects to NameNodes and DataNodes; nil: TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
}

// FS is a file system. It is for concurrent use.
type FS struct {
	// Immutable.
	cfg Config
	rpc *hrpc.Client
	web *web // nil: by RPC
	sec learned

	blocks blocks

	mu     sync.Mutex // guards the following
	client *hdfs.Client
	keys   KeyServer // nil: not yet known
}

// Info is a file's or folder's.
type Info struct {
	Path     string
	Size     int64
	Modified time.Time // to the millisecond, as NodeManagers compare it
	Mode     fs.FileMode
	Owner    string
	Group    string
	Dir      bool
	Block    int64 // size of its blocks
}

// Open connects to a file system.
func Open(cfg Config) (*FS, error) {
	if len(cfg.NameNodes) == 0 {
		return nil, errors.New("cannot open HDFS: no NameNode is configured")
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 30 * time.Second
	}
	if cfg.Attempts == 0 {
		cfg.Attempts = 4
	}
	if cfg.Dial == nil {
		d := net.Dialer{Timeout: min(cfg.Timeout, 20*time.Second)}
		cfg.Dial = func(ctx context.Context, addr string) (net.Conn, error) { return d.DialContext(ctx, "tcp", addr) }
	}
	f := &FS{cfg: cfg}
	f.rpc = hrpc.New(hrpc.Config{Protocol: protocol, Addrs: cfg.NameNodes, Auth: cfg.auths(), Protection: cfg.Security.Protection, Dial: cfg.Dial,
		ConnectTimeout: min(cfg.Timeout, 20*time.Second), CallTimeout: cfg.Timeout,
		// A repeated call has the number of the first, by which the NameNode knows it and repeats its answer.
		Retry: hrpc.Retry{Attempts: 2*len(cfg.NameNodes) + 1, RepeatLost: true}})
	if cfg.Web != nil {
		over, err := cfg.Web(cfg.NameNodes)
		if err == nil && len(over.Bases) > 0 {
			if over.Timeout == 0 {
				over.Timeout = cfg.Timeout
			}
			f.web, err = newWeb(over)
		}
		if err != nil || f.web != nil {
			return f, err
		}
	}
	_, err := f.connection()
	return f, err
}

// Close closes the connections.
func (f *FS) Close() error {
	f.mu.Lock()
	c := f.client
	f.mu.Unlock()
	f.drop(c)
	if f.web != nil {
		f.web.rest.Close()
	}
	return f.rpc.Close()
}

// lastError keeps what the last dial failed with: the library passes on its text alone.
type lastError struct {
	mu  sync.Mutex // guards err
	err error
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

func (l *lastError) of(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.err = err
		return c, err
	}
}

// behind is err with the last dial's error behind it.
func (l *lastError) behind(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil || errors.Is(err, l.err) {
		return err
	}
	return &dialError{err, l.err}
}

// dialError reads as the library's error does, and is what we failed with too.
type dialError struct{ text, cause error }

func (e *dialError) Error() string   { return e.text.Error() }
func (e *dialError) Unwrap() []error { return []error{e.text, e.cause} }

// connection returns the client in use, made if there is none.
func (f *FS) connection() (*hdfs.Client, error) {
	f.mu.Lock()
	c := f.client
	f.mu.Unlock()
	if c != nil {
		return c, nil
	}
	var last lastError
	c, err := hdfs.NewClient(hdfs.ClientOptions{Addresses: f.cfg.NameNodes, User: f.cfg.User, UseDatanodeHostname: f.cfg.DatanodeHostname, NamenodeDialFunc: last.of(f.dialNameNode), DatanodeDialFunc: f.dialDataNode})
	if err != nil {
		return nil, fmt.Errorf("cannot connect to HDFS (%s): %w", f.where(), last.behind(err))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.client != nil { // another call was faster
		_ = c.Close()
		return f.client, nil
	}
	f.client = c
	return c, nil
}

// drop closes a client that turned out to be broken, so that the next call connects anew. One made meanwhile stays.
func (f *FS) drop(c *hdfs.Client) {
	f.mu.Lock()
	if f.client == c {
		f.client = nil
	}
	f.mu.Unlock()
	if c != nil {
		_ = c.Close()
	}
}

// timed is a connection each of whose reads and writes has a time limit.
type timed struct {
	net.Conn
	timeout time.Duration
}

func (t *timed) Read(b []byte) (int, error) {
	if err := t.SetReadDeadline(time.Now().Add(t.timeout)); err != nil {
		return 0, err
	}
	return t.Conn.Read(b)
}

func (t *timed) Write(b []byte) (int, error) {
	if err := t.SetWriteDeadline(time.Now().Add(t.timeout)); err != nil {
		return 0, err
	}
	return t.Conn.Write(b)
}

// Home is the user's folder.
func (f *FS) Home() string { return "/user/" + f.cfg.User }

// where names the NameNodes, for errors.
func (f *FS) where() string {
	if f.web != nil {
		return f.web.where
	}
	return "NameNode " + strings.Join(f.cfg.NameNodes, " or ")
}

// User is who we are to HDFS.
func (f *FS) User() string { return f.cfg.User }

// do runs a call, and once more on a new connection if the present one turns out to be broken.
func (f *FS) do(what string, call func(*hdfs.Client) error) error {
	for try := 0; ; try++ {
		c, err := f.connection()
		if err == nil {
			err = call(c)
		}
		if err == nil {
			return nil
		}
		if try > 0 || !broken(err) {
			return fmt.Errorf("cannot %s in HDFS (%s): %w", what, f.where(), told(err))
		}
		f.drop(c)
	}
}

// overWeb does something over HTTP.
func (f *FS) overWeb(ctx context.Context, what string, call func(context.Context) error) error {
	if err := call(ctx); err != nil {
		return fmt.Errorf("cannot %s in HDFS (%s): %w", what, f.where(), err)
	}
	return nil
}

// broken reports whether an error is the connection's and not an answer of HDFS's.
func broken(err error) bool {
	if _, ok := errors.AsType[answerError](err); ok {
		return false
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrInvalid) || errors.Is(err, errEncoded) || isKeyError(err) {
		return false
	}
	var answer hdfs.Error
	if errors.As(err, &answer) {
		return false
	}
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		if _, isAnswer := pe.Err.(hdfs.Error); isAnswer {
			return false
		}
	}
	return true
}

// Stat returns a file's description.
func (f *FS) Stat(name string) (Info, error) {
	var info Info
	if f.web != nil {
		err := f.overWeb(context.Background(), "look at "+name, func(ctx context.Context) error {
			st, err := f.web.status(ctx, name)
			info = st.info(name)
			return err
		})
		return info, err
	}
	err := f.do("look at "+name, func(c *hdfs.Client) error {
		st, err := c.Stat(name)
		if err == nil {
			info = infoOf(name, st)
		}
		return err
	})
	return info, err
}

func infoOf(name string, st os.FileInfo) Info {
	i := Info{Path: name, Size: st.Size(), Modified: st.ModTime(), Mode: st.Mode().Perm(), Dir: st.IsDir()}
	if h, ok := st.(*hdfs.FileInfo); ok {
		i.Owner, i.Group = h.Owner(), h.OwnerGroup()
		if raw, ok := h.Sys().(*hdfs.FileStatus); ok {
			i.Block = int64(raw.GetBlocksize())
		}
	}
	return i
}

// List returns what is in a folder.
func (f *FS) List(dir string) ([]Info, error) {
	var out []Info
	if f.web != nil {
		err := f.overWeb(context.Background(), "list "+dir, func(ctx context.Context) (err error) {
			out, err = f.web.list(ctx, dir)
			return err
		})
		return out, err
	}
	err := f.do("list "+dir, func(c *hdfs.Client) error {
		entries, err := c.ReadDir(dir)
		out = nil
		for _, e := range entries {
			out = append(out, infoOf(path.Join(dir, e.Name()), e))
		}
		return err
	})
	return out, err
}

// MkdirAll makes a folder and those above it.
func (f *FS) MkdirAll(dir string, perm fs.FileMode) error {
	if f.web != nil {
		return f.overWeb(context.Background(), "make "+dir, func(ctx context.Context) error { return f.web.mkdirAll(ctx, dir, perm) })
	}
	return f.do("make "+dir, func(c *hdfs.Client) error { return c.MkdirAll(dir, perm) })
}

// Chmod sets a file's or folder's rights; fs.ModeSticky counts.
func (f *FS) Chmod(name string, mode fs.FileMode) error {
	perm := mode.Perm()
	if mode&fs.ModeSticky != 0 {
		perm |= 0o1000 // it goes over the wire as it is in Unix
	}
	if f.web != nil {
		return f.overWeb(context.Background(), "change the rights of "+name, func(ctx context.Context) error {
			return f.web.call(ctx, nil, http.MethodPut, "SETPERMISSION", name, "permission", octal(perm))
		})
	}
	return f.do("change the rights of "+name, func(c *hdfs.Client) error { return c.Chmod(name, perm) })
}

// Chown sets a file's or folder's owner and group, which only HDFS's own user may.
func (f *FS) Chown(name, user, group string) error {
	if f.web != nil {
		return f.overWeb(context.Background(), "change the owner of "+name, func(ctx context.Context) error {
			return f.web.call(ctx, nil, http.MethodPut, "SETOWNER", name, "owner", user, "group", group)
		})
	}
	return f.do("change the owner of "+name, func(c *hdfs.Client) error { return c.Chown(name, user, group) })
}

// RemoveAll removes a file or a folder with all in it. What is not there is no error.
func (f *FS) RemoveAll(name string) error {
	if f.web != nil {
		return f.overWeb(context.Background(), "remove "+name, func(ctx context.Context) error { return f.web.remove(ctx, name) })
	}
	return f.do("remove "+name, func(c *hdfs.Client) error {
		if err := c.RemoveAll(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// ReadFile reads a file of at most limit bytes.
func (f *FS) ReadFile(name string, limit int64) ([]byte, error) {
	var out []byte
	err := f.each("read "+name, func(c *hdfs.Client) error {
		r := &Reader{fs: f, name: name, ctx: context.Background(), size: -1}
		if err := r.open(c); err != nil {
			return err
		}
		defer r.Close()
		if r.size > limit {
			return fmt.Errorf("%w: it has %d bytes, more than %d", fs.ErrInvalid, r.size, limit)
		}
		var err error
		out, err = io.ReadAll(io.LimitReader(r, limit))
		return err
	})
	return out, err
}

// each runs what does not need a connection over HTTP, and else do.
func (f *FS) each(what string, call func(*hdfs.Client) error) error {
	if f.web != nil {
		return f.overWeb(context.Background(), what, func(context.Context) error { return call(nil) })
	}
	return f.do(what, call)
}

// Upload stores what open returns under a name and returns how HDFS describes the file. Readers see the whole file or none. If a file of that
// name is there already, by then, Upload leaves it alone and fails with fs.ErrExist. A write that breaks off is done anew, with a new reader.
func (f *FS) Upload(ctx context.Context, name string, perm fs.FileMode, open func() (io.ReadCloser, error), progress func(done int64)) (Info, error) {
	var err error
	var left []string // of attempts that broke off, whose connection could not remove them
	defer func() {
		for _, tmp := range left {
			_ = f.RemoveAll(tmp)
		}
	}()
	for try := range f.cfg.Attempts {
		if try > 0 {
			if !hrest.Pause(ctx, time.Duration(try)*500*time.Millisecond) {
				return Info{}, fmt.Errorf("cannot store %s in HDFS: %w (and then %w)", name, err, ctx.Err())
			}
		}
		var info Info
		var c *hdfs.Client // stays nil over HTTP
		err = nil
		if f.web == nil {
			c, err = f.connection()
		}
		if err == nil {
			tmp := path.Join(path.Dir(name), "."+path.Base(name)+"."+rand.Text()[:8]+".tmp")
			if info, err = f.upload(ctx, c, tmp, name, perm, open, progress); err == nil {
				return info, nil
			}
			left = append(left, tmp)
		}
		if ctx.Err() != nil || !broken(err) {
			break
		}
		f.drop(c)
	}
	return Info{}, fmt.Errorf("cannot store %s in HDFS (%s): %w", name, f.where(), told(err))
}

// upload is one attempt. When it fails, tmp may be there.
func (f *FS) upload(ctx context.Context, c *hdfs.Client, tmp, name string, perm fs.FileMode, open func() (io.ReadCloser, error), progress func(int64)) (Info, error) {
	if _, err := f.Stat(name); err == nil {
		return Info{}, fs.ErrExist
	}
	defer f.blocks.forget(tmp)
	w, err := f.create(c, tmp, perm)
	if err != nil {
		return Info{}, err
	}
	if err := f.fill(ctx, w, open, progress); err != nil {
		return Info{}, err
	}
	if err := f.Rename(ctx, tmp, name, false); err != nil {
		return Info{}, err
	}
	return f.Stat(name) // it is there now, whatever becomes of this connection
}

// fill writes and closes a file.
func (f *FS) fill(ctx context.Context, w fileWriter, open func() (io.ReadCloser, error), progress func(int64)) error {
	r, err := open()
	if err != nil {
		return fmt.Errorf("%w: %w", fs.ErrInvalid, err)
	}
	defer r.Close()
	buf := make([]byte, 1<<20)
	done := int64(0)
	for {
		n, rerr := io.ReadFull(r, buf)
		if n > 0 {
			if _, err := writeAll(ctx, w, buf[:n]); err != nil {
				return err
			}
			done += int64(n)
			if progress != nil {
				progress(done)
			}
		}
		if rerr == io.EOF || rerr == io.ErrUnexpectedEOF {
			break
		}
		if rerr != nil {
			return fmt.Errorf("%w: %w", fs.ErrInvalid, rerr)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return complete(ctx, w)
}

// Rename renames a file. If there is one of the new name, it is replaced, or else Rename fails with fs.ErrExist.
func (f *FS) Rename(ctx context.Context, from, to string, replace bool) error {
	if f.web != nil {
		return f.web.rename(ctx, from, to, replace)
	}
	err := f.rpc.Call(ctx, "rename2", &pb.Rename2RequestProto{Src: &from, Dst: &to, OverwriteDest: &replace}, &pb.Rename2ResponseProto{})
	switch hrpc.ClassOf(err) {
	case "org.apache.hadoop.fs.FileAlreadyExistsException":
		return fmt.Errorf("%w: %w", fs.ErrExist, err)
	case hrpc.ClassAccessControl:
		return fmt.Errorf("%w: %w", fs.ErrPermission, err)
	case "java.io.FileNotFoundException":
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return err
}
