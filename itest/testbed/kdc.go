package testbed

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// NeedKDC are the programs of MIT's KDC.
var NeedKDC = map[string]string{
	"krb5kdc":      "install krb5-kdc",
	"kadmin.local": "install krb5-kdc and krb5-admin-server",
	"kinit":        "install krb5-user",
}

// KDCOptions say what a realm is to be like.
type KDCOptions struct {
	Realm      string            // "": TEST.LOCAL
	Enctypes   string            // of all keys; "": AES with SHA-1
	Principals []string          // without the realm
	Extra      string            // lines for [libdefaults] of krb5.conf
	MaxLife    string            // of tickets; "": 24h
	Renewable  string            // their renewable life; "": 7d
	Kdcs       []string          // put before the real one in krb5.conf, such as dead ones
	Passwords  map[string]string // of principals that are to have one beside those with random keys
}

// KDC is a real MIT KDC. Nothing of the machine's own Kerberos is used or changed.
type KDC struct {
	Realm string
	Addr  string // host:port
	Conf  string // path of krb5.conf

	bed  *Bed
	dir  string
	env  []string
	proc *Process
	opt  KDCOptions
}

// defaultEnctypes are what most sites have.
const defaultEnctypes = "aes256-cts-hmac-sha1-96 aes128-cts-hmac-sha1-96"

// StartKDC makes a realm and starts its KDC.
func StartKDC(t testing.TB, b *Bed, opt KDCOptions) *KDC {
	t.Helper()
	Need(t, NeedKDC)
	def := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	def(&opt.Realm, "TEST.LOCAL")
	def(&opt.Enctypes, defaultEnctypes)
	def(&opt.MaxLife, "24h")
	def(&opt.Renewable, "7d")
	k := &KDC{Realm: opt.Realm, Addr: fmt.Sprintf("127.0.0.1:%d", FreePort(t)), bed: b, dir: b.Dir("kdc-" + opt.Realm), opt: opt}
	k.Conf = k.WriteConf("krb5.conf", opt.Extra)
	profile := b.File("kdc-"+opt.Realm+"/kdc.conf", fmt.Sprintf(`[kdcdefaults]
  kdc_listen = %[1]s
  kdc_tcp_listen = %[1]s
[realms]
  %[2]s = {
    database_name = %[3]s/principal
    key_stash_file = %[3]s/stash
    acl_file = %[3]s/kadm5.acl
    max_life = %[4]s
    max_renewable_life = %[5]s
    supported_enctypes = %[6]s
    default_principal_flags = +renewable, +forwardable
  }
[logging]
  kdc = FILE:%[3]s/kdc.log
`, k.Addr, opt.Realm, k.dir, opt.MaxLife, opt.Renewable, strings.ReplaceAll(opt.Enctypes, " ", ":normal ")+":normal"))
	k.env = []string{"KRB5_CONFIG=" + k.Conf, "KRB5_KDC_PROFILE=" + profile}
	k.run("kdb5_util", "create", "-s", "-r", opt.Realm, "-P", "master")
	var cmds strings.Builder
	for _, p := range opt.Principals {
		fmt.Fprintf(&cmds, "addprinc -randkey %s\n", p)
	}
	for p, pw := range opt.Passwords {
		fmt.Fprintf(&cmds, "addprinc -pw %s %s\n", pw, p)
	}
	k.Admin(cmds.String())
	k.Start()
	return k
}

// WriteConf writes a krb5.conf for the realm with more lines in its [libdefaults], and returns its path.
func (k *KDC) WriteConf(name, extra string) string {
	var kdcs strings.Builder
	for _, a := range append(append([]string(nil), k.opt.Kdcs...), k.Addr) {
		fmt.Fprintf(&kdcs, "    kdc = %s\n", a)
	}
	return k.bed.File("kdc-"+k.Realm+"/"+name, fmt.Sprintf(`[libdefaults]
  default_realm = %[1]s
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  forwardable = true
  ticket_lifetime = 24h
  renew_lifetime = 7d
  permitted_enctypes = %[2]s
%[3]s
[realms]
  %[1]s = {
%[4]s  }
[domain_realm]
  localhost = %[1]s
  .localhost = %[1]s
`, k.Realm, k.opt.Enctypes, extra, kdcs.String()))
}

// Start starts the KDC, again after Stop.
func (k *KDC) Start() { k.start() }

// fakeTime is where Debian has libfaketime, which gives a program another time.
const fakeTime = "/usr/lib/*/faketime/libfaketime.so.1"

// StartAt starts the KDC, again after Stop, with a clock that is wrong by so much: "+17m" or "-17m".
func (k *KDC) StartAt(by string) {
	k.bed.t.Helper()
	libs, _ := filepath.Glob(fakeTime)
	if len(libs) == 0 {
		k.bed.t.Fatalf("there is no %s: install libfaketime", fakeTime)
	}
	k.start("LD_PRELOAD="+libs[0], "FAKETIME="+by, "FAKETIME_DONT_FAKE_MONOTONIC=1")
}

func (k *KDC) start(env ...string) {
	k.bed.t.Helper()
	k.proc = k.bed.Start(Spec{Name: "kdc-" + k.Realm, Path: "krb5kdc", Args: []string{"-n", "-r", k.Realm}, Env: append(env, k.env...)})
	k.bed.Eventually("the KDC of "+k.Realm+" listens", time.Minute, func() error {
		c, err := net.DialTimeout("tcp", k.Addr, time.Second)
		if err != nil {
			return err
		}
		return c.Close()
	})
}

// Stop kills the KDC.
func (k *KDC) Stop() { k.proc.Kill() }

// Pause lets the KDC take connections and answer nothing, until Stop.
func (k *KDC) Pause() { k.proc.Signal(syscall.SIGSTOP) }

// Admin runs kadmin.local with commands, a line each.
func (k *KDC) Admin(commands string) string {
	k.bed.t.Helper()
	cmd := exec.Command("kadmin.local", "-r", k.Realm)
	cmd.Env = append(os.Environ(), k.env...)
	cmd.Stdin = strings.NewReader(commands)
	out, err := cmd.CombinedOutput()
	if err != nil {
		k.bed.t.Fatalf("cannot run kadmin.local: %v\n%s", err, out)
	}
	return string(out)
}

// Keytab writes the keys of principals into a file of the name and returns its path. Their keys are changed by that; with keep, they stay as they are.
func (k *KDC) Keytab(name string, keep bool, principals ...string) string {
	k.bed.t.Helper()
	file := filepath.Join(k.dir, name)
	flag := ""
	if keep {
		flag = "-norandkey"
	}
	out := k.Admin(fmt.Sprintf("ktadd -k %s %s %s\n", file, flag, strings.Join(principals, " ")))
	if _, err := os.Stat(file); err != nil {
		k.bed.t.Fatalf("no keytab was written:\n%s", out)
	}
	return file
}

// Kinit gets a ticket by a keytab into a cache, named as KRB5CCNAME does, with more of kinit's arguments.
func (k *KDC) Kinit(cache, keytab, principal string, args ...string) {
	k.bed.t.Helper()
	k.run("kinit", append(append(args, "-c", cache, "-kt", keytab), principal)...)
}

// Env is what a client's environment needs beside a cache.
func (k *KDC) Env() []string { return []string{"KRB5_CONFIG=" + k.Conf} }

func (k *KDC) run(prog string, args ...string) {
	k.bed.t.Helper()
	cmd := exec.Command(prog, args...)
	cmd.Env = append(os.Environ(), k.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		k.bed.t.Fatalf("cannot run %s %s: %v\n%s", prog, strings.Join(args, " "), err, out)
	}
}
