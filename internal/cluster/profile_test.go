package cluster

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestProfile(t *testing.T) {
	gpu := func(n int64) string { return CustomOf(map[string]int64{"gpu": n, "none": 0}) }
	for _, c := range []struct {
		p, q Profile
		fits bool
	}{
		{Profile{}, Profile{}, true},
		{Profile{}, Profile{1000, 512, gpu(1)}, true},
		{Profile{MemoryMB: 513}, Profile{1000, 512, gpu(1)}, false},
		{Profile{MilliCPU: 1001}, Profile{1000, 512, gpu(1)}, false},
		{Profile{Custom: gpu(1)}, Profile{1000, 512, gpu(1)}, true},
		{Profile{Custom: gpu(2)}, Profile{1000, 512, gpu(1)}, false},
		{Profile{Custom: gpu(1)}, Profile{1000, 512, ""}, false},
		{Profile{Custom: gpu(1)}, Profile{Custom: "fpga=1,gpu=4"}, true},
	} {
		if got := c.p.Fits(c.q); got != c.fits {
			t.Errorf("{%v} fits {%v}: %v", c.p, c.q, got)
		}
	}
	all := Profile{4000, 4096, "fpga=1,gpu=4"}
	if got := all.Minus(Profile{500, 512, gpu(4)}); got != (Profile{3500, 3584, "fpga=1"}) {
		t.Errorf("what is left: %v", got)
	}
	if got := all.Part(4); got != (Profile{1000, 1024, "gpu=1"}) {
		t.Errorf("a part: %v", got)
	}
	if got := (Profile{500, 512, gpu(1)}).Times(3).String(); got != "1.5 cores, 1536 MiB, gpu=3" {
		t.Errorf("text: %q", got)
	}
}

func TestProfileSums(t *testing.T) {
	profile := rapid.Custom(func(t *rapid.T) Profile {
		n := rapid.Int64Range(0, 5)
		return Profile{n.Draw(t, "cpu"), n.Draw(t, "mem"), CustomOf(map[string]int64{"a": n.Draw(t, "a"), "b": n.Draw(t, "b")})}
	})
	rapid.Check(t, func(t *rapid.T) {
		p, q := profile.Draw(t, "p"), profile.Draw(t, "q")
		if got := p.Plus(q).Minus(q); got != p {
			t.Fatalf("{%v} + {%v} - the same = {%v}", p, q, got)
		}
		if !p.Fits(p.Plus(q)) || p.Times(3) != p.Plus(p).Plus(p) || p.Times(3).Part(3) != p {
			t.Fatalf("sums of {%v} and {%v} are wrong", p, q)
		}
		if c := p.Compare(q); c != -q.Compare(p) || (c == 0) != (p == q) {
			t.Fatalf("{%v} and {%v} compare as %d and %d", p, q, c, q.Compare(p))
		}
		if p != q && p.Fits(q) && p.Compare(q) <= 0 {
			t.Fatalf("{%v} fits {%v}, but comes first", p, q)
		}
	})
}

func FuzzParseCustom(f *testing.F) {
	for _, s := range []string{"", "gpu=1", "yarn.io/gpu=2, fpga=1", "a=1,a=2", "=1", "a=-1", "1=1", "cpu=1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseCustom(text)
		if err != nil {
			return
		}
		again, err := ParseCustom(CustomOf(m))
		if err != nil || CustomOf(again) != CustomOf(m) {
			t.Fatalf("%q became %q, which gives %v, %v", text, CustomOf(m), again, err)
		}
	})
}

func TestParseCustomErrors(t *testing.T) {
	for _, bad := range []string{"gpu", "gpu=x", "gpu=-1", "memory=4", "=1", "a b=1", "gpu=1,gpu=1", "9=9"} {
		if m, err := ParseCustom(bad); err == nil {
			t.Errorf("%q gave %v", bad, m)
		}
	}
	if got := slices.Sorted(func(yield func(string) bool) {
		for name := range (Profile{Custom: "a=1,yarn.io/gpu=2"}).Amounts() {
			if !yield(name) {
				return
			}
		}
	}); !slices.Equal(got, []string{"a", "yarn.io/gpu"}) {
		t.Errorf("names %v", got)
	}
}
