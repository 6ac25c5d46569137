package web

import (
	"bytes"
	"crypto/rand"
	_ "embed"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
)

//go:embed page.html
var pageText string

// pageTemplate has two parts: "page", the whole document, and "content", what changes, which the page's script fetches anew.
var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"count": count, "rate": rate, "bytes": size, "share": share, "clock": clock, "states": states, "ago": ago, "lag": lag,
}).Parse(pageText))

// pageData is what the template sees.
type pageData struct {
	*appmaster.Snapshot
	Nonce string
	Over  bool
}

// page serves the dashboard, or with ?content its changing part.
func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	data := pageData{Snapshot: s.view.Snapshot(), Nonce: rand.Text()}
	data.Over = slices.Contains([]string{"finished", "failed", "canceled"}, data.State)
	name := "page"
	if r.URL.Query().Has("content") {
		name = "content"
	}
	var out bytes.Buffer
	if err := pageTemplate.ExecuteTemplate(&out, name, data); err != nil {
		fail(w, http.StatusInternalServerError, "cannot show the page: %v", err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", fmt.Sprintf("default-src 'none'; connect-src 'self'; style-src 'nonce-%s'; script-src 'nonce-%s'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", data.Nonce, data.Nonce))
	_, _ = w.Write(out.Bytes())
}

// count writes a number with thin spaces between thousands.
func count(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

func scaled(v float64, base float64, units ...string) string {
	i := 0
	for v >= base && i < len(units)-1 {
		v /= base
		i++
	}
	if i == 0 {
		return fmt.Sprintf("%.0f %s", v, units[i])
	}
	return fmt.Sprintf("%.1f %s", v, units[i])
}

func rate(v float64) string { return strings.TrimSpace(scaled(v, 1000, "", "k", "M", "G")) + "/s" }

func size(n int64) string { return scaled(float64(n), 1024, "B", "KiB", "MiB", "GiB", "TiB") }

func share(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }

func clock(t time.Time) string { return t.Format("15:04:05") }

func ago(now, t time.Time) string { return now.Sub(t).Round(time.Second).String() }

// lag shows a watermark as the time it stands for and how far behind it is.
func lag(now time.Time, watermark *int64) string {
	switch {
	case watermark == nil:
		return "–"
	case *watermark > now.AddDate(200, 0, 0).UnixMilli():
		return "end"
	}
	t := time.UnixMilli(*watermark)
	return fmt.Sprintf("%s (%s behind)", t.UTC().Format("2006-01-02 15:04:05"), now.Sub(t).Round(time.Second))
}

// states writes counts by state, such as "2 running, 1 finished".
func states(tasks map[string]int) string {
	var parts []string
	for _, s := range slices.Sorted(maps.Keys(tasks)) {
		parts = append(parts, fmt.Sprintf("%d %s", tasks[s], s))
	}
	return strings.Join(parts, ", ")
}
