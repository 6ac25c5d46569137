package cli

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/hadoop/identity"
)

// keylessAdvice is what helps where a key server gives no token.
const keylessAdvice = "see that the key server (KMS) runs and can be reached from here, and what its log says; or use paths outside of encryption zones (hdfs crypto -listZones)"

// keyless refuses an application that is known to need a token which a key server did not give: its files, or what the job reads or writes, are in an
// encryption zone. Others go without, and a warning says so.
func (sub *submission) keyless(ctx context.Context, lack *identity.KeyTokenError) error {
	zone, unseen := inZone(sub.hdfsPaths(), func(uri string) (bool, error) { return sub.inZoneOf(ctx, uri, lack.Systems) })
	if zone != "" {
		return precondition(fmt.Errorf("%s is in an encryption zone of HDFS: %w", zone, lack), keylessAdvice)
	}
	text := "the application goes without: nothing that the job names is in one"
	if len(unseen) > 0 {
		text = "the application goes without: whether " + strings.Join(unseen, ", ") + " is in one could not be seen"
	}
	fmt.Fprintf(sub.s.env.Stderr, "heddle: warning: %s; %s\n", printable(lack.Error()), printable(text))
	return nil
}

// hdfsPaths are the staging folder and what the job names in HDFS. Of a pattern it is the folder that all is in which it finds.
func (sub *submission) hdfsPaths() []string {
	out := []string{sub.store.URI + sub.store.Root}
	for _, n := range sub.needs {
		if n.Kind != flow.NeedPath || !strings.HasPrefix(n.Name, "hdfs://") {
			continue
		}
		name := n.Name
		if i := strings.IndexAny(name, "*?["); n.Pattern && i >= 0 {
			name = "hdfs:/" + path.Dir(strings.TrimPrefix(name[:i], "hdfs:/")+"x")
		}
		out = append(out, name)
	}
	return out
}

// inZone is the first of paths that is in an encryption zone, "" if none is, and which could not be looked at.
func inZone(paths []string, look func(uri string) (bool, error)) (zone string, unseen []string) {
	for _, p := range paths {
		switch in, err := look(p); {
		case err != nil:
			unseen = append(unseen, p)
		case in:
			return p, nil
		}
	}
	return "", unseen
}

// inZoneOf reports whether a path is in an encryption zone of one of those file systems.
func (sub *submission) inZoneOf(ctx context.Context, uri string, systems []string) (bool, error) {
	def, err := sub.h.conf.DefaultFS()
	if err != nil {
		return false, err
	}
	p, where, err := sub.placeOf(ctx, uri, def)
	return p.Encrypted && slices.Contains(systems, where.URI), err
}
