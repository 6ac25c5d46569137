package ship

import (
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Extra is a file, folder or archive that goes with an application: it is in the working directory of every container, under Link.
type Extra struct {
	Source  string // a local path, or an hdfs: URI
	Link    string
	Remote  bool // Source is in HDFS already
	Dir     bool // a local folder, which is sent as an archive
	Archive bool // unpacked into a directory of the name Link
}

// reserved are names that a container's working directory has for other purposes.
var reserved = []string{programLink, bundleLink, "container_tokens", "launch_container.sh", "default_container_executor.sh", "default_container_executor_session.sh", "tmp"}

// archives are the endings of names by which NodeManagers know archives.
var archives = []string{".zip", ".jar", ".tar.gz", ".tgz", ".tar"}

// isArchive reports whether NodeManagers unpack a file of that name.
func isArchive(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(archives, func(ext string) bool { return strings.HasSuffix(name, ext) })
}

// ParseExtras reads the values of --ship: a local file, folder or archive, or the hdfs: URI of a file or archive, each with
// #name behind it to call it otherwise.
func ParseExtras(values []string) ([]Extra, error) {
	var out []Extra
	for _, v := range values {
		e, err := parseExtra(v)
		if err != nil {
			return nil, fmt.Errorf("cannot send along %s: %w", v, err)
		}
		if slices.ContainsFunc(out, func(o Extra) bool { return o.Link == e.Link }) {
			return nil, fmt.Errorf("cannot send along %s: something else is called %s already; give it another name by #name behind it", v, e.Link)
		}
		out = append(out, e)
	}
	return out, nil
}

func parseExtra(value string) (Extra, error) {
	source, link, named := value, "", false
	if i := strings.LastIndexByte(value, '#'); i >= 0 {
		if _, err := os.Lstat(value); err != nil { // else # is part of a file's name
			source, link, named = value[:i], value[i+1:], true
		}
	}
	e := Extra{Source: source, Remote: strings.Contains(source, "://")}
	base := filepath.Base(source)
	if e.Remote {
		u, err := url.Parse(source)
		if err != nil || u.Scheme != "hdfs" || u.Path == "" || u.Path == "/" {
			return Extra{}, fmt.Errorf("it is neither a local path nor a URI such as hdfs:///path/to/file")
		}
		base = path.Base(u.Path)
	} else {
		st, err := os.Stat(source)
		if err != nil {
			return Extra{}, err
		}
		if e.Dir = st.IsDir(); !e.Dir && !st.Mode().IsRegular() {
			return Extra{}, fmt.Errorf("it is neither a file nor a folder")
		}
		if abs, err := filepath.Abs(source); err == nil {
			e.Source, base = abs, filepath.Base(abs)
		}
	}
	e.Archive = e.Dir || isArchive(base)
	if e.Link = base; named {
		e.Link = link
	}
	return e, checkLink(e.Link)
}

func checkLink(link string) error {
	switch {
	case link == "" || link == "." || link == ".." || strings.ContainsAny(link, "/\\\"'`$\n") || strings.HasPrefix(link, "-"):
		return fmt.Errorf("%q is no name for a file in a container; give it another by #name behind it", link)
	case slices.Contains(reserved, link) || strings.HasPrefix(link, ".container_tokens"):
		return fmt.Errorf("the name %s has another meaning in a container; give it another by #name behind it", link)
	}
	return nil
}
