package hconf

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// RM is where one ResourceManager listens, each as host:port.
type RM struct {
	ID                       string // of yarn.resourcemanager.ha.rm-ids; "" without high availability
	Client, Scheduler, Admin string
	Web, WebHTTPS            string
}

// RMs returns the cluster's ResourceManagers in their configured order: one, or all of a highly available group.
func (c *Conf) RMs() ([]RM, error) {
	ha, err := c.Bool("yarn.resourcemanager.ha.enabled", false)
	if err != nil {
		return nil, err
	}
	if !ha {
		rm, err := c.rm("")
		return []RM{rm}, err
	}
	const key = "yarn.resourcemanager.ha.rm-ids"
	ids, err := c.List(key)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, c.bad(key, "", errors.New("yarn.resourcemanager.ha.enabled is true, so it must name the ResourceManagers"))
	}
	var rms []RM
	for _, id := range ids {
		rm, err := c.rm(id)
		if err != nil {
			return nil, err
		}
		rms = append(rms, rm)
	}
	return rms, nil
}

func (c *Conf) rm(id string) (RM, error) {
	rm := RM{ID: id}
	for _, f := range []struct {
		to   *string
		key  string
		port int
	}{
		{&rm.Client, "address", 8032}, {&rm.Scheduler, "scheduler.address", 8030}, {&rm.Admin, "admin.address", 8033},
		{&rm.Web, "webapp.address", 8088}, {&rm.WebHTTPS, "webapp.https.address", 8090},
	} {
		a, err := c.rmAddress(id, "yarn.resourcemanager."+f.key, f.port)
		if err != nil {
			return RM{}, err
		}
		*f.to = a
	}
	return rm, nil
}

func (c *Conf) rmAddress(id, key string, port int) (string, error) {
	if id == "" {
		return c.Address(key, port)
	}
	a, err := c.Address(key+"."+id, port)
	if err != nil || a != "" {
		return a, err
	}
	host := "yarn.resourcemanager.hostname." + id
	h, err := c.String(host)
	if err != nil {
		return "", err
	}
	if h == "" {
		return "", c.bad(host, "", errors.New("neither it nor "+key+"."+id+" is set"))
	}
	a, err = address(h, port)
	if err != nil {
		return "", c.bad(host, h, err)
	}
	return a, nil
}

// YARNOverHTTPS reports whether YARN's web services speak HTTPS only.
func (c *Conf) YARNOverHTTPS() (bool, error) {
	v, err := c.String("yarn.http.policy")
	return strings.EqualFold(v, "HTTPS_ONLY"), err
}

// HDFSOverHTTPS reports whether HDFS's web services speak HTTPS only.
func (c *Conf) HDFSOverHTTPS() (bool, error) {
	v, err := c.String("dfs.http.policy")
	return strings.EqualFold(v, "HTTPS_ONLY"), err
}

// Kerberos reports whether the cluster demands Kerberos.
func (c *Conf) Kerberos() (bool, error) {
	const key = "hadoop.security.authentication"
	v, err := c.String(key)
	if err != nil {
		return false, err
	}
	switch strings.ToLower(v) {
	case "simple":
		return false, nil
	case "kerberos", "kerberos_ssl", "token":
		return true, nil
	}
	return false, c.bad(key, v, errors.New("it is neither simple nor kerberos"))
}

// Protection returns the qualities of protection that hadoop.rpc.protection allows, as SASL names them, in its order.
func (c *Conf) Protection() ([]string, error) { return c.Qualities("hadoop.rpc.protection") }

// Qualities returns the qualities of protection that a key lists, as SASL names them, in its order.
func (c *Conf) Qualities(key string) ([]string, error) {
	list, err := c.List(key)
	if err != nil {
		return nil, err
	}
	names := map[string]string{"authentication": "auth", "integrity": "auth-int", "privacy": "auth-conf"}
	var out []string
	for _, p := range list {
		q, ok := names[strings.ToLower(p)]
		if !ok {
			return nil, c.bad(key, strings.Join(list, ","), errors.New("it must list authentication, integrity or privacy"))
		}
		out = append(out, q)
	}
	return out, nil
}

// FileSystem is an HDFS file system and its NameNodes.
type FileSystem struct {
	URI       string   // "hdfs://nameservice" or "hdfs://host:port"
	Logical   string   // its nameservice; "" when the URI names a host
	NameNodes []string // host:port of their RPC
}

// DefaultFS returns the file system that fs.defaultFS names.
func (c *Conf) DefaultFS() (FileSystem, error) {
	const key = "fs.defaultFS"
	v, err := c.String(key)
	if err != nil {
		return FileSystem{}, err
	}
	fsys, err := c.HDFS(v)
	var ke *KeyError
	if err != nil && !errors.As(err, &ke) {
		return FileSystem{}, c.bad(key, v, err)
	}
	return fsys, err
}

// HDFS returns the file system of an hdfs: URI, whose path does not matter.
func (c *Conf) HDFS(uri string) (FileSystem, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return FileSystem{}, errors.New("it is not a URI")
	}
	if u.Scheme != "hdfs" || u.Host == "" {
		return FileSystem{}, errors.New("only hdfs://nameservice and hdfs://host:port can be used")
	}
	if ns := u.Host; u.Port() == "" && c.isNameservice(ns) {
		nns, err := c.nameNodes(ns)
		return FileSystem{URI: "hdfs://" + ns, Logical: ns, NameNodes: nns}, err
	}
	a, err := address(u.Host, 8020)
	if err != nil {
		return FileSystem{}, err
	}
	return FileSystem{URI: "hdfs://" + u.Host, NameNodes: []string{a}}, nil
}

func (c *Conf) isNameservice(ns string) bool {
	list, err := c.List("dfs.nameservices")
	if err != nil {
		return false
	}
	_, ha := c.props["dfs.ha.namenodes."+ns]
	return contains(list, ns) || ha
}

// nameNodes returns the RPC addresses of a nameservice.
func (c *Conf) nameNodes(ns string) ([]string, error) {
	key := "dfs.ha.namenodes." + ns
	ids, err := c.List(key)
	if err != nil {
		return nil, err
	}
	suffixes := []string{"." + ns}
	if len(ids) > 0 {
		suffixes = nil
		for _, id := range ids {
			suffixes = append(suffixes, "."+ns+"."+id)
		}
	}
	var out []string
	for _, s := range suffixes {
		k := "dfs.namenode.rpc-address" + s
		a, err := c.Address(k, 8020)
		if err != nil {
			return nil, err
		}
		if a == "" && len(ids) == 0 {
			a, err = c.Address("dfs.namenode.rpc-address", 8020)
			if err != nil {
				return nil, err
			}
		}
		if a == "" {
			return nil, c.bad(k, "", errors.New("nameservice "+ns+" needs it"))
		}
		out = append(out, a)
	}
	return out, nil
}

// NameNodeWeb returns the web service of the NameNode whose RPC has an address, as a URL without a path.
func (c *Conf) NameNodeWeb(rpc string) (string, error) {
	https, err := c.HDFSOverHTTPS()
	if err != nil {
		return "", err
	}
	scheme, key, port := "http://", "dfs.namenode.http-address", 9870
	if https {
		scheme, key, port = "https://", "dfs.namenode.https-address", 9871
	}
	const prefix = "dfs.namenode.rpc-address"
	for k := range c.props {
		suffix, ok := strings.CutPrefix(k, prefix)
		if !ok {
			continue
		}
		if a, err := c.Address(k, 8020); err != nil || a != rpc {
			continue
		}
		if a, err := c.Address(key+suffix, port); err == nil && a != "" && !strings.HasPrefix(a, "0.0.0.0:") {
			return scheme + a, nil
		}
	}
	host, _, err := net.SplitHostPort(rpc)
	if err != nil {
		return "", err
	}
	if a, err := c.Address(key, port); err == nil && a != "" { // of all, by its port
		if _, p, err := net.SplitHostPort(a); err == nil {
			return scheme + net.JoinHostPort(host, p), nil
		}
	}
	return scheme + net.JoinHostPort(host, strconv.Itoa(port)), nil
}

// ServerPrincipal returns a server's Kerberos principal with _HOST replaced by its host, which is best a full name.
func ServerPrincipal(principal, host string) string {
	name, rest, ok := strings.Cut(principal, "/")
	if !ok {
		return principal
	}
	inst, realm, ok := strings.Cut(rest, "@")
	if !ok || inst != "_HOST" || strings.Contains(realm, "@") {
		return principal
	}
	return name + "/" + strings.ToLower(host) + "@" + realm
}
