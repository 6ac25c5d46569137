package yarnid

import "testing"

func TestNames(t *testing.T) {
	app := Application{1700000000000, 7}
	att := Attempt{app, 2}
	for _, c := range []struct {
		c    Container
		text string
	}{
		{Container{att, 3}, "container_1700000000000_0007_02_000003"},
		{Container{att, 1<<40 | 12}, "container_e01_1700000000000_0007_02_000012"},
		{Container{att, 123<<40 | 1234567}, "container_e123_1700000000000_0007_02_1234567"},
	} {
		if got := c.c.String(); got != c.text {
			t.Errorf("got %s, want %s", got, c.text)
		}
		if got, err := ParseContainer(c.text); err != nil || got != c.c {
			t.Errorf("%s: got %+v, %v", c.text, got, err)
		}
		if got := ContainerOf(c.c.Proto()); got != c.c {
			t.Errorf("by message: got %v, want %v", got, c.c)
		}
	}
	if got, err := ParseApplication(app.String()); err != nil || got != app || app.String() != "application_1700000000000_0007" {
		t.Errorf("%v: got %v, %v", app, got, err)
	}
	if got, err := ParseAttempt(att.String()); err != nil || got != att || att.String() != "appattempt_1700000000000_0007_000002" {
		t.Errorf("%v: got %v, %v", att, got, err)
	}
	for _, bad := range []string{"", "application", "application_1", "application_1_2_3", "application_-1_2", "application_1_99999999999", "job_1_2", "application_1_x"} {
		if _, err := ParseApplication(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	for _, bad := range []string{"container_1_2_3", "container_e_1_2_3_4", "container_e1_2_3_4", "container_1_2_3_9999999999999", "appattempt_1_2_3"} {
		if _, err := ParseContainer(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("container_e01_1700000000000_0007_02_000012")
	f.Add("application_1_1")
	f.Fuzz(func(t *testing.T, s string) {
		if c, err := ParseContainer(s); err == nil {
			if again, err := ParseContainer(c.String()); err != nil || again != c {
				t.Errorf("%q: %v, and again %v, %v", s, c, again, err)
			}
		}
		if a, err := ParseApplication(s); err == nil {
			if again, err := ParseApplication(a.String()); err != nil || again != a {
				t.Errorf("%q: %v, and again %v, %v", s, a, again, err)
			}
		}
	})
}
