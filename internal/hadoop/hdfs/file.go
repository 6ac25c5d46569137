package hdfs

import (
	"context"
	"crypto/cipher"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"github.com/heddle-stream/heddle/internal/hadoop/hrest"
)

// readable refuses what the library would read wrongly.
func readable(st fs.FileInfo, name string) error {
	if _, coded := kindOf(st); coded != "" {
		return fmt.Errorf("%s is erasure-coded (%s): %w", name, coded, errEncoded)
	}
	return nil
}

// Glob returns the files and folders whose names match a pattern, in the manner of path.Match, sorted.
// A folder that may not be listed is an error, not a mismatch.
func (f *FS) Glob(pattern string) ([]Info, error) {
	pattern = path.Clean(pattern)
	if !strings.ContainsAny(pattern, `*?[\`) {
		info, err := f.Stat(pattern)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return []Info{info}, err
	}
	parents, err := f.Glob(path.Dir(pattern))
	if err != nil {
		return nil, err
	}
	var out []Info
	for _, p := range parents {
		if !p.Dir {
			continue
		}
		entries, err := f.List(p.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			ok, err := path.Match(path.Base(pattern), path.Base(e.Path))
			if err != nil {
				return nil, fmt.Errorf("cannot look for %s: %w", pattern, err)
			}
			if ok {
				out = append(out, e)
			}
		}
	}
	slices.SortFunc(out, func(a, b Info) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// Reader reads a file from some offset on. When a connection breaks, it goes on where it was.
type Reader struct {
	fs   *FS
	name string
	ctx  context.Context // of the whole reading
	at   int64
	r    io.ReadCloser
	size int64
	mod  time.Time

	seal  *seal         // nil: the file is in no encryption zone
	clear cipher.Stream // for what comes next from r; nil without seal
}

// readAttempts is how often in a row a read is tried without getting anywhere.
const readAttempts = 4

// OpenAt opens a file at an offset. The reading ends with ctx, within the time limit of a connection.
func (f *FS) OpenAt(ctx context.Context, name string, offset int64) (*Reader, error) {
	r := &Reader{fs: f, name: name, ctx: ctx, at: offset, size: -1}
	if err := f.each("open "+name, r.open); err != nil {
		return nil, err
	}
	return r, nil
}

// open opens the file where the reading is to go on. Over HTTP, c is nil.
func (r *Reader) open(c *hdfs.Client) error {
	if r.fs.web != nil {
		return r.openWeb()
	}
	file, err := c.Open(r.name)
	if err != nil {
		return err
	}
	if err = readable(file.Stat(), r.name); err == nil && r.seal == nil {
		r.seal, err = r.fs.sealOf(r.ctx, r.name, file.Stat())
	}
	st := file.Stat()
	switch {
	case err != nil:
	case r.size >= 0 && (st.Size() != r.size || !st.ModTime().Equal(r.mod)):
		err = fmt.Errorf("%w: %s was changed while it was read", fs.ErrInvalid, r.name)
	case r.at > file.Stat().Size():
		err = fmt.Errorf("%w: %s is shorter than it was: %d bytes", fs.ErrInvalid, r.name, file.Stat().Size())
	default:
		_, err = file.Seek(r.at, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		return err
	}
	r.r, r.size, r.mod, r.clear = file, file.Stat().Size(), file.Stat().ModTime(), r.seal.at(r.at)
	return nil
}

// Read implements io.Reader.
func (r *Reader) Read(b []byte) (int, error) {
	for try := 1; ; try++ {
		if err := r.ctx.Err(); err != nil {
			return 0, err
		}
		var err error
		if r.r == nil {
			err = r.fs.each("open "+r.name, r.open)
		}
		if err == nil {
			var n int
			n, err = r.r.Read(b)
			if r.clear != nil {
				r.clear.XORKeyStream(b[:n], b[:n])
			}
			r.at += int64(n)
			if n > 0 || err == io.EOF || err == nil {
				return n, ignoreUnlessEnd(err)
			}
		}
		if try == readAttempts || !broken(err) {
			return 0, fmt.Errorf("cannot read %s at %d in HDFS (%s): %w", r.name, r.at, r.fs.where(), err)
		}
		_ = r.Close()
		if !hrest.Pause(r.ctx, time.Duration(try)*250*time.Millisecond) {
			return 0, r.ctx.Err()
		}
	}
}

// ignoreUnlessEnd leaves an error that came with data to the next read, which meets it again.
func ignoreUnlessEnd(err error) error {
	if err == io.EOF {
		return err
	}
	return nil
}

// Close closes the connection.
func (r *Reader) Close() error {
	if r.r == nil {
		return nil
	}
	err := r.r.Close()
	r.r = nil
	return err
}

// Writer writes a file. It has a connection to the NameNode of its own, so that what becomes of other calls does not end the file. A DataNode that
// is lost while it writes fails it: what was written can't be had again.
type Writer struct {
	fs   *FS // of this file alone
	name string
	w    fileWriter
	open bool
}

// fileWriter is a file that is being written: the library's, or one in an encryption zone.
type fileWriter interface {
	io.WriteCloser
	Flush() error
}

// Create makes a new file, which is whole after Close.
func (f *FS) Create(name string, perm fs.FileMode) (*Writer, error) {
	own, err := Open(f.cfg)
	if err != nil {
		return nil, err
	}
	w := &Writer{fs: own, name: name}
	err = own.each("create "+name, func(c *hdfs.Client) error {
		var err error
		w.w, err = own.create(c, name, perm)
		return err
	})
	if err != nil {
		_ = own.Close()
		return nil, err
	}
	w.open = true
	return w, nil
}

// create makes a file where the library can write it. Over HTTP, c is nil.
func (f *FS) create(c *hdfs.Client, name string, perm fs.FileMode) (fileWriter, error) {
	if f.web != nil {
		return f.web.create(context.Background(), name, perm)
	}
	f.blocks.forget(name)
	dir, err := c.Stat(path.Dir(name))
	if err != nil {
		return nil, err
	}
	def, err := c.ServerDefaults()
	if err != nil {
		return nil, err
	}
	encrypted, coded := kindOf(dir)
	if !encrypted && coded == "" {
		return c.CreateFile(name, def.Replication, def.BlockSize, perm)
	}
	ctx, cancel := context.WithTimeout(context.Background(), f.cfg.Timeout)
	defer cancel()
	if encrypted {
		if _, err := f.keyServer(ctx, path.Dir(name)); err != nil {
			return nil, err
		}
	}
	w, err := f.createSpecial(ctx, c, name, def.Replication, def.BlockSize, perm)
	if err != nil || !encrypted {
		return w, err
	}
	st, err := c.Stat(name)
	var s *seal
	if err == nil {
		s, err = f.sealOf(ctx, name, st)
	}
	if err != nil {
		_ = c.Remove(name)
		return nil, err
	}
	if s == nil { // the zone went meanwhile
		return w, nil
	}
	return &sealedWriter{w: w, seal: s}, nil
}

// Write implements io.Writer.
func (w *Writer) Write(b []byte) (int, error) {
	n, err := writeAll(context.Background(), w.w, b)
	return n, w.failed("write", err)
}

// blockAttempts is how often a block is asked for, over some 20 s.
const blockAttempts = 16

// writeAll writes to a file. Where the next block is not to be had because the NameNode has not yet heard of the one before, it waits a little.
func writeAll(ctx context.Context, w io.Writer, b []byte) (done int, err error) {
	wait := 50 * time.Millisecond
	for try := 1; ; try++ {
		n, err := w.Write(b[done:])
		done += n
		if err == nil || !notYet(err) || try == blockAttempts {
			return done, err
		}
		if !hrest.Pause(ctx, wait) {
			return done, ctx.Err()
		}
		wait = min(2*wait, 2*time.Second)
	}
}

// notYet reports whether a block was refused because one before is not known to be whole: see blocks.
func notYet(err error) bool {
	var answer hdfs.Error
	return errors.As(err, &answer) && strings.HasSuffix(answer.Exception(), ".NotReplicatedYetException")
}

// Flush returns when DataNodes have all that was written.
func (w *Writer) Flush() error { return w.failed("write", w.w.Flush()) }

func (w *Writer) failed(verb string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot %s %s in HDFS (%s): %w", verb, w.name, w.fs.where(), told(err))
}

// Finish makes the file whole under another name. With replace, a file of that name goes; else it is fs.ErrExist.
func (w *Writer) Finish(ctx context.Context, name string, replace bool) error {
	if err := complete(ctx, w.w); err != nil {
		return w.failed("close", err)
	}
	w.open = false
	return w.fs.Rename(ctx, w.name, name, replace)
}

// Close removes the file unless Finish made it whole, and closes the connection.
func (w *Writer) Close() error {
	var err error
	if w.open {
		w.open = false
		err = w.fs.RemoveAll(w.name) // which also ends our lease
	}
	return errors.Join(err, w.fs.Close())
}

// completeLimit is how long a NameNode may take to hear of all blocks of a file that has been written.
const completeLimit = 2 * time.Minute

// complete closes a file. Its last blocks may need a moment to be reported to the NameNode.
func complete(ctx context.Context, w io.Closer) error {
	began := time.Now()
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := w.Close()
		switch {
		case err == nil || !hdfs.IsErrReplicating(err):
			return err
		case time.Since(began) >= completeLimit:
			return fmt.Errorf("after %v no DataNode has told the NameNode that it has the last blocks: see the logs of both", completeLimit)
		case !hrest.Pause(ctx, wait):
			return ctx.Err()
		}
	}
}
