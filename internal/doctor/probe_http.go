package doctor

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/heddle-stream/heddle/internal/doctor/verdict"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/ship"
)

// askHTTP asks each of the services by which HDFS is spoken to over HTTP for its root, and one that answers for the staging folder. By RPC, where that is open,
// it looks whether the same file system answers.
func (p *patient) askHTTP(ctx context.Context) (string, verdict.Verdict) {
	over, password := p.id.OverHTTP()
	if !over {
		return "", verdict.Skip("hdfs.http-uri is not set")
	}
	cfg, err := p.hdfs(ctx, p.fs)
	var web hdfs.Web
	if err == nil {
		web, err = cfg.Web(p.fs.NameNodes)
	}
	if err != nil {
		return "find the services that speak for " + p.fs.URI, verdict.HTTPOptions(err)
	}
	tried := "look at / by " + strings.Join(web.Bases, ", ")
	all := make([]verdict.Server, len(web.Bases))
	var wg sync.WaitGroup
	for i, base := range web.Bases {
		wg.Go(func() { all[i] = answersHTTP(cfg, web, base) })
	}
	wg.Wait()
	v := verdict.HTTP(all, password)
	if v.Status == verdict.Fail {
		return tried, v
	}
	root, ok := p.stagingRoot()
	if !ok {
		return tried, v
	}
	tried += ", and at " + root
	seen, err := reaches(cfg, root)
	if err != nil {
		return tried, verdict.All([]verdict.Verdict{verdict.HTTPStaging(root, p.id.User(), "", "", err), v})
	}
	cfg.Web = nil
	byRPC, err := reaches(cfg, root)
	if err != nil { // it is closed, or another check tells
		byRPC = seen
	}
	return tried, verdict.All([]verdict.Verdict{v, verdict.HTTPStaging(root, p.id.User(), seen, byRPC, nil)})
}

// answersHTTP asks one service.
func answersHTTP(cfg hdfs.Config, web hdfs.Web, base string) verdict.Server {
	s := verdict.Server{Addr: base}
	web.Bases, web.Attempts, web.Timeout = []string{base}, 1, callTime
	cfg.Web = func([]string) (hdfs.Web, error) { return web, nil }
	f, err := hdfs.Open(cfg)
	if err != nil {
		s.Err = err
		return s
	}
	defer f.Close()
	_, err = f.Stat("/")
	if class := hrpc.ClassOf(err); class == hrpc.ClassStandby || class == "StandbyException" {
		s.Standby, err = true, nil
	}
	s.Err = err
	return s
}

// stagingRoot is the folder of our applications' files, if it is in the default file system.
func (p *patient) stagingRoot() (string, bool) {
	dir := p.cfg.StagingDir
	if dir == "" {
		home, err := ship.Home(p.conf, p.id.User())
		return path.Join(home, ".heddle"), err == nil
	}
	if !strings.Contains(dir, "://") {
		return path.Join("/", dir, p.id.User()), true
	}
	where, name, err := p.locate(dir)
	return path.Join(name, p.id.User()), err == nil && where.URI == p.fs.URI
}

// reaches is how much of a path is there.
func reaches(cfg hdfs.Config, name string) (string, error) {
	f, err := hdfs.Open(cfg)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for at := name; ; at = path.Dir(at) {
		_, err := f.Stat(at)
		if err == nil || at == "/" || !errors.Is(err, fs.ErrNotExist) {
			return at, err
		}
	}
}
