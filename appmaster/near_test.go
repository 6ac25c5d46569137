package appmaster

import (
	"slices"
	"testing"

	"github.com/heddle-stream/heddle/internal/flow"
)

func TestFavourites(t *testing.T) {
	splits := []flow.Split{{Hosts: []string{"a", "b"}}, {Hosts: []string{"b"}}, {Hosts: []string{"c", "a"}}, {Hosts: []string{"d"}}, {}}
	hosts := func(s flow.Split) []string { return s.Hosts }
	if got := favourites(splits, hosts); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("got %v: most splits first, else the first that was named, three at most", got)
	}
	if got := favourites(nil, hosts); len(got) > 0 {
		t.Errorf("got %v of nothing", got)
	}
}
