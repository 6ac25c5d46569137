package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
)

// ui is the dashboard: plain HTML, CSS and modules, with nothing from outside.
//
//go:embed ui
var ui embed.FS

// index is the page, with the script that has to run first within it: where the address lacks its trailing slash, nothing
// else can be loaded. policy lets the page run that script, load what is embedded and ask this API, and nothing else.
var index, policy = buildIndex()

func buildIndex() (page []byte, policy string) {
	read := func(name string) []byte {
		data, err := fs.ReadFile(ui, name)
		if err != nil {
			panic(err) // it is embedded
		}
		return data
	}
	start := read("ui/start.js")
	sum := sha256.Sum256(start)
	page = bytes.Replace(read("ui/index.html"), []byte(`<script src="ui/start.js"></script>`), slices.Concat([]byte("<script>"), start, []byte("</script>")), 1)
	return page, "default-src 'none'; connect-src 'self'; img-src 'self'; style-src 'self'; script-src 'self' 'sha256-" +
		base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

// page serves the dashboard.
func (s *Server) page(w http.ResponseWriter, r *http.Request) { serveFile(w, r, "index.html", index) }

// asset serves a part of the dashboard.
func (s *Server) asset(w http.ResponseWriter, r *http.Request) {
	data, err := fs.ReadFile(ui, "ui/"+r.PathValue("file"))
	if err != nil {
		fail(w, http.StatusNotFound, "there is no %s %s", r.Method, r.URL.Path)
		return
	}
	serveFile(w, r, r.PathValue("file"), data)
}

func serveFile(w http.ResponseWriter, r *http.Request, name string, data []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType(name))
	h.Set("Content-Security-Policy", policy)
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
}

// contentType does not ask the host, whose tables differ.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return strings.TrimSuffix(mime.TypeByExtension(path.Ext(name)), "; charset=utf-8") + "; charset=utf-8"
}
