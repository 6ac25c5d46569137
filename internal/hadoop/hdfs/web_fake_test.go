package hdfs

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// fakeWeb is a file system over HTTP: WebHDFS, whose data goes by a second server, or HttpFS, which knows less and takes data itself.
type fakeWeb struct {
	t      *testing.T
	httpFS bool
	front  *httptest.Server
	data   *httptest.Server
	knox   *httptest.Server // in front of front; nil: none

	mu     sync.Mutex
	files  map[string][]byte // nil: a folder
	cut    int               // answers with data that break off in the middle
	ops    []string
	flags  string
	denied string // a path that may not be touched
}

const secretToken = "TOKEN-THAT-NOBODY-MAY-SEE"

func newFake(t *testing.T, httpFS bool) *fakeWeb {
	f := &fakeWeb{t: t, httpFS: httpFS, files: map[string][]byte{"/": nil, "/user": nil, "/coded": nil}}
	f.front = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.front.Close)
	f.data = f.front
	if !httpFS {
		f.data = httptest.NewServer(http.HandlerFunc(f.serve))
		t.Cleanup(f.data.Close)
	}
	return f
}

// fs opens the file system.
func (f *fakeWeb) fs() *FS {
	f.t.Helper()
	fsys, err := Open(Config{NameNodes: []string{"127.0.0.1:1"}, User: "alice", Web: func([]string) (Web, error) {
		if f.knox != nil {
			return f.viaKnox("hush"), nil
		}
		return Web{Bases: []string{f.front.URL + "/webhdfs/v1"}, Attempts: 2, Authorize: func(r *http.Request) error {
			q := r.URL.Query()
			q.Set("delegation", secretToken)
			r.URL.RawQuery = q.Encode()
			return nil
		}}, nil
	}})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = fsys.Close() })
	return fsys
}

// close makes it one that can't be reached.
func (f *fakeWeb) close() {
	f.front.Close()
	if f.knox != nil {
		f.knox.Close()
	}
}

func fail(w http.ResponseWriter, status int, class, message string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"RemoteException":{"exception":%q,"javaClassName":%q,"message":%q}}`, class[strings.LastIndexByte(class, '.')+1:], class, message)
}

func (f *fakeWeb) status(name string) map[string]any {
	kind, data := "FILE", f.files[name]
	if data == nil {
		kind = "DIRECTORY"
	}
	return map[string]any{"pathSuffix": "", "owner": "alice", "group": "users", "permission": "1755", "type": kind, "length": len(data), "blockSize": 128, "modificationTime": 1500 + len(data), "ecBit": name == "/coded", "encBit": name == "/zone"}
}

func (f *fakeWeb) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := r.URL.Query()
	name, ok := strings.CutPrefix(r.URL.Path, "/webhdfs/v1")
	op := q.Get("op")
	if !ok || q.Get("delegation") != secretToken || strings.Contains(r.URL.EscapedPath(), "+") {
		f.t.Errorf("asked for %s", r.URL)
	}
	if name == "" {
		name = "/"
	}
	f.ops = append(f.ops, op)
	_, there := f.files[name]
	switch {
	case name == f.denied && name != "":
		fail(w, 403, "org.apache.hadoop.security.AccessControlException", "Permission denied: user=alice\n\tat some.Class")
	case !there && slices.Contains([]string{"GETFILESTATUS", "LISTSTATUS", "OPEN", "APPEND"}, op):
		fail(w, 404, "java.io.FileNotFoundException", "File does not exist: "+name)
	case f.httpFS && (op == "CHECKACCESS" || op == "GETFILEBLOCKLOCATIONS" || op == "GETSERVERDEFAULTS"):
		fail(w, 400, "com.sun.jersey.api.ParamException$QueryParamException", "java.lang.IllegalArgumentException: No enum constant")
	default:
		f.do(w, r, op, name)
	}
}

func (f *fakeWeb) do(w http.ResponseWriter, r *http.Request, op, name string) {
	q := r.URL.Query()
	answer := func(v any) { _ = json.NewEncoder(w).Encode(v) }
	_, there := f.files[name]
	switch op {
	case "GETFILESTATUS":
		answer(map[string]any{"FileStatus": f.status(name)})
	case "LISTSTATUS":
		var all []any
		for n := range f.files {
			if path.Dir(n) == name && n != name {
				s := f.status(n)
				s["pathSuffix"] = path.Base(n)
				all = append(all, s)
			}
		}
		answer(map[string]any{"FileStatuses": map[string]any{"FileStatus": all}})
	case "MKDIRS":
		f.files[name] = nil
		answer(map[string]any{"boolean": true})
	case "DELETE":
		delete(f.files, name)
		answer(map[string]any{"boolean": there})
	case "RENAME":
		f.rename(w, name, q.Get("destination"), q.Get("renameoptions"))
	case "SETPERMISSION", "SETOWNER", "CHECKACCESS":
	case "GETQUOTAUSAGE":
		answer(map[string]any{"QuotaUsage": map[string]any{"fileAndDirectoryCount": 3, "quota": 10, "spaceConsumed": 5, "spaceQuota": -1}})
	case "GETSERVERDEFAULTS":
		answer(map[string]any{"FsServerDefaults": map[string]any{"replication": 3, "blockSize": 100}})
	case "GETFILEBLOCKLOCATIONS":
		answer(map[string]any{"BlockLocations": map[string]any{"BlockLocation": []any{map[string]any{"hosts": []string{"h1", "h2"}, "offset": 0, "length": 100}, map[string]any{"hosts": []string{"h1"}, "offset": 100, "length": 7, "corrupt": true}}}})
	case "OPEN", "CREATE", "APPEND":
		f.transfer(w, r, op, name)
	default:
		f.t.Errorf("asked for %s", op)
	}
}

func (f *fakeWeb) rename(w http.ResponseWriter, from, to, how string) {
	data, ok := f.files[from]
	_, taken := f.files[to]
	switch {
	case f.httpFS && (!ok || taken):
		fmt.Fprint(w, `{"boolean":false}`)
		return
	case !ok:
		fail(w, 404, "java.io.FileNotFoundException", "rename source not found")
		return
	case taken && how != "OVERWRITE":
		fail(w, 403, "org.apache.hadoop.fs.FileAlreadyExistsException", "rename destination exists")
		return
	}
	delete(f.files, from)
	f.files[to] = data
	if f.httpFS {
		fmt.Fprint(w, `{"boolean":true}`)
	}
}

// transfer is an operation with data, which the first server sends on.
func (f *fakeWeb) transfer(w http.ResponseWriter, r *http.Request, op, name string) {
	q := r.URL.Query()
	direct := q.Get("data") == "true" || f.httpFS && op == "OPEN"
	if !direct {
		if b, _ := io.ReadAll(r.Body); len(b) > 0 {
			f.t.Errorf("%s: data came before it was asked for", op)
		}
		q.Set("data", "true")
		w.Header().Set("Location", f.data.URL+r.URL.EscapedPath()+"?"+q.Encode())
		w.WriteHeader(http.StatusTemporaryRedirect)
		return
	}
	if op == "OPEN" {
		at, err := strconv.Atoi(q.Get("offset"))
		if err != nil || at >= len(f.files[name]) {
			f.t.Errorf("asked for %s of %d bytes", q.Get("offset"), len(f.files[name]))
			at = len(f.files[name])
		}
		rest := f.files[name][at:]
		if f.cut > 0 && len(rest) > 1 {
			f.cut--
			w.Header().Set("Content-Length", strconv.Itoa(len(rest)))
			rest = rest[:len(rest)/2]
		}
		_, _ = w.Write(rest)
		return
	}
	if r.Header.Get("Content-Type") != "application/octet-stream" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Error(err)
	}
	if op == "CREATE" {
		if _, taken := f.files[name]; taken {
			fail(w, 403, "org.apache.hadoop.fs.FileAlreadyExistsException", name+" already exists")
			return
		}
		f.flags = q.Get("createflag")
		w.WriteHeader(http.StatusCreated)
	}
	f.files[name] = append(append([]byte{}, f.files[name]...), b...)
}
