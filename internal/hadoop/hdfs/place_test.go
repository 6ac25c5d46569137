package hdfs

import (
	"errors"
	"strings"
	"testing"
)

func TestTakes(t *testing.T) {
	quota := func(q QuotaUsage) Place {
		return Place{Dir: "/user/a", Block: 100, Quotas: []FolderQuota{{"/user", q}}}
	}
	for name, test := range map[string]struct {
		p     Place
		files int
		size  int64
		kind  Trouble
		want  string
	}{
		"free":         {Place{Dir: "/user/a", Block: 100}, 3, 1 << 40, NoTrouble, ""},
		"coded":        {Place{Dir: "/user/a", Coded: "RS-6-3-1024k"}, 3, 1, NoTrouble, ""},
		"encrypted":    {Place{Dir: "/user/a", Encrypted: true}, 1, 1, NoTrouble, ""},
		"locked":       {Place{Dir: "/user/a", Encrypted: true, Locked: &keyError{"/user/a", errors.New("no key server is known")}}, 1, 1, Sealed, "/user/a is in an encryption zone of HDFS: no key server is known"},
		"room":         {quota(QuotaUsage{Names: 7, NamesQuota: 10, Space: 900, SpaceQuota: 1000}), 3, 100, NoTrouble, ""},
		"no names":     {quota(QuotaUsage{Names: 8, NamesQuota: 10}), 3, 1, Quota, "the quota of /user in HDFS is 10 files and folders, of which 2 are left, and 3 are needed"},
		"no block":     {quota(QuotaUsage{Space: 901, SpaceQuota: 1000}), 3, 1, Quota, "of which 99 are left, and 100 must be free"},
		"too large":    {quota(QuotaUsage{Space: 500, SpaceQuota: 1000}), 3, 501, Quota, "of which 500 are left, and 501 must be free"},
		"overdrawn":    {quota(QuotaUsage{Space: 2000, SpaceQuota: 1000}), 3, 1, Quota, "of which 0 are left"},
		"names beyond": {quota(QuotaUsage{Names: 12, NamesQuota: 10}), 1, 1, Quota, "of which 0 are left"},
	} {
		err := test.p.Takes(test.files, test.size)
		if TroubleOf(err) != test.kind || (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v (%s), want %s, %q", name, err, TroubleOf(err), test.kind, test.want)
		}
		if (Advice(err, "alice") == "") != (err == nil) {
			t.Errorf("%s: the advice is %q", name, Advice(err, "alice"))
		}
	}
}
