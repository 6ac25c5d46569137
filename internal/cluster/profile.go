package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Profile is an amount of resources: of a slot, an agent, or a request. The zero Profile means "any slot".
// Profiles are values: two of the same amounts are equal by ==.
type Profile struct {
	MilliCPU int64  `json:"milli_cpu,omitzero"` // thousandths of a core
	MemoryMB int64  `json:"memory_mb,omitzero"` // MiB
	Custom   string `json:"custom,omitzero"`    // amounts of other resources, such as "fpga=1,gpu=2": as CustomOf writes them
}

// CustomOf is the one text of amounts of custom resources. Those of none are left out.
func CustomOf(amounts map[string]int64) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		if n := amounts[name]; n != 0 {
			if b.Len() > 0 {
				b.WriteByte(',')
			}
			b.WriteString(name + "=" + strconv.FormatInt(n, 10))
		}
	}
	return b.String()
}

// ParseCustom reads amounts of custom resources, such as "fpga=1,gpu=2", in any order.
func ParseCustom(text string) (map[string]int64, error) {
	out := map[string]int64{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, amount, ok := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		n, err := strconv.ParseInt(strings.TrimSpace(amount), 10, 64)
		if !ok || err != nil || n < 0 {
			return nil, fmt.Errorf("%q is not NAME=AMOUNT, such as gpu=1", part)
		}
		if err := CheckResourceName(name); err != nil {
			return nil, err
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("resource %s is there twice", name)
		}
		out[name] = n
	}
	return out, nil
}

// CheckResourceName says why name can't be that of a custom resource, or nil. YARN's own, such as yarn.io/gpu, can.
func CheckResourceName(name string) error {
	switch name {
	case "":
		return fmt.Errorf("a resource without a name")
	case "cpu", "memory", "vcores", "memory-mb":
		return fmt.Errorf("resource %s is no custom one: it has a place of its own", name)
	}
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789._-/", r)) {
			return fmt.Errorf("%q is not a name of a resource: letters, then letters, digits and . _ - / are", name)
		}
	}
	return nil
}

// Amounts returns the custom resources of p.
func (p Profile) Amounts() map[string]int64 {
	if p.Custom == "" {
		return nil
	}
	m, err := ParseCustom(p.Custom)
	if err != nil {
		panic("cluster: a profile's custom resources were not written by CustomOf: " + err.Error())
	}
	return m
}

// Fits reports whether p can be cut from q.
func (p Profile) Fits(q Profile) bool {
	if p.MilliCPU > q.MilliCPU || p.MemoryMB > q.MemoryMB {
		return false
	}
	if p.Custom == "" || p.Custom == q.Custom {
		return true
	}
	have := q.Amounts()
	for name, n := range p.Amounts() {
		if n > have[name] {
			return false
		}
	}
	return true
}

// Minus is what is left of p after q, which fits, was cut from it.
func (p Profile) Minus(q Profile) Profile { return p.plus(q, -1) }

// Plus is p and q together.
func (p Profile) Plus(q Profile) Profile { return p.plus(q, 1) }

func (p Profile) plus(q Profile, times int64) Profile {
	out := Profile{MilliCPU: p.MilliCPU + times*q.MilliCPU, MemoryMB: p.MemoryMB + times*q.MemoryMB, Custom: p.Custom}
	if q.Custom != "" {
		sum := p.Amounts()
		if sum == nil {
			sum = map[string]int64{}
		}
		for name, n := range q.Amounts() {
			sum[name] += times * n
		}
		out.Custom = CustomOf(sum)
	}
	return out
}

// Times is n times p.
func (p Profile) Times(n int) Profile {
	out := Profile{MilliCPU: p.MilliCPU * int64(n), MemoryMB: p.MemoryMB * int64(n)}
	if p.Custom != "" {
		m := p.Amounts()
		for name := range m {
			m[name] *= int64(n)
		}
		out.Custom = CustomOf(m)
	}
	return out
}

// Part is one of n equal parts of p.
func (p Profile) Part(n int) Profile {
	out := Profile{MilliCPU: p.MilliCPU / int64(n), MemoryMB: p.MemoryMB / int64(n)}
	if p.Custom != "" {
		m := p.Amounts()
		for name := range m {
			m[name] /= int64(n)
		}
		out.Custom = CustomOf(m)
	}
	return out
}

// Compare orders profiles so that the one that is harder to place comes first: by custom resources, memory, then cpu.
func (p Profile) Compare(q Profile) int {
	if p.Custom != q.Custom {
		pm, qm := p.Amounts(), q.Amounts()
		var ps, qs int64
		for _, n := range pm {
			ps += n
		}
		for _, n := range qm {
			qs += n
		}
		if c := cmp.Compare(qs, ps); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(q.MemoryMB, p.MemoryMB), cmp.Compare(q.MilliCPU, p.MilliCPU), cmp.Compare(q.Custom, p.Custom))
}

// String is p for people: "0.5 cores, 512 MiB, gpu=1".
func (p Profile) String() string {
	var parts []string
	if p.MilliCPU != 0 {
		noun := "cores"
		if p.MilliCPU == 1000 {
			noun = "core"
		}
		parts = append(parts, strconv.FormatFloat(float64(p.MilliCPU)/1000, 'f', -1, 64)+" "+noun)
	}
	if p.MemoryMB != 0 {
		parts = append(parts, strconv.FormatInt(p.MemoryMB, 10)+" MiB")
	}
	if p.Custom != "" {
		parts = append(parts, p.Custom)
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}
