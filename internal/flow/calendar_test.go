package flow

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func zone(t interface{ Fatal(...any) }, name string) *time.Location {
	loc, err := LoadZone(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func TestCalendarSpan(t *testing.T) {
	for _, c := range []struct {
		name, zone, at string
		unit           CalendarUnit
		start          string
		hours          float64
	}{
		{"plain day", "Europe/Berlin", "2024-05-05T12:00:00Z", Day, "2024-05-04T22:00:00Z", 24},
		{"spring forward", "Europe/Berlin", "2024-03-31T12:00:00Z", Day, "2024-03-30T23:00:00Z", 23},
		{"fall back", "Europe/Berlin", "2024-10-27T12:00:00Z", Day, "2024-10-26T22:00:00Z", 25},
		{"first moment of a day", "Europe/Berlin", "2024-10-26T22:00:00Z", Day, "2024-10-26T22:00:00Z", 25},
		{"last moment of a day", "Europe/Berlin", "2024-10-27T22:59:59.999Z", Day, "2024-10-26T22:00:00Z", 25},
		{"half-hour saving", "Australia/Lord_Howe", "2024-04-06T20:00:00Z", Day, "2024-04-06T13:00:00Z", 24.5},
		{"midnight skipped", "America/Sao_Paulo", "2018-11-04T12:00:00Z", Day, "2018-11-04T03:00:00Z", 23},
		{"midnight skipped, day before", "America/Sao_Paulo", "2018-11-04T02:59:00Z", Day, "2018-11-03T03:00:00Z", 24},
		{"midnight comes twice", "America/Havana", "2023-11-05T12:00:00Z", Day, "2023-11-05T04:00:00Z", 25},
		{"clocks go back over midnight", "America/Sao_Paulo", "2019-02-17T02:30:00Z", Day, "2019-02-16T02:00:00Z", 25},
		{"date skipped", "Pacific/Apia", "2011-12-30T12:00:00Z", Day, "2011-12-30T10:00:00Z", 24},
		{"back across midnight by an hour", "America/St_Johns", "2010-11-07T03:00:00Z", Day, "2010-11-07T02:30:00Z", 25},
		{"week with a long day", "Europe/Berlin", "2024-10-23T12:00:00Z", Week, "2024-10-20T22:00:00Z", 169},
		{"Sunday is the last day of its week", "UTC", "2024-10-27T23:00:00Z", Week, "2024-10-21T00:00:00Z", 168},
		{"month", "Europe/Berlin", "2024-03-10T00:00:00Z", Month, "2024-02-29T23:00:00Z", 743},
		{"quarter", "UTC", "2024-05-10T00:00:00Z", Quarter, "2024-04-01T00:00:00Z", 91 * 24},
		{"year", "UTC", "2024-05-10T00:00:00Z", Year, "2024-01-01T00:00:00Z", 366 * 24},
	} {
		t.Run(c.name, func(t *testing.T) {
			at, err := time.Parse(time.RFC3339, c.at)
			if err != nil {
				t.Fatal(err)
			}
			start, end := calendarSpan(at.UnixMilli(), c.unit, zone(t, c.zone))
			got, hours := time.UnixMilli(start).UTC().Format(time.RFC3339), float64(end-start)/3600e3
			if got != c.start || hours != c.hours {
				t.Errorf("%s of %s in %s: got %s and %v h, want %s and %v h", c.unit, c.at, c.zone, got, hours, c.start, c.hours)
			}
		})
	}
}

// Units follow each other without gap, hold their own moment, and are found alike from their first and last moment.
func TestCalendarSpanPartitionsTime(t *testing.T) {
	zones := []string{"UTC", "Europe/Berlin", "America/Sao_Paulo", "America/St_Johns", "Pacific/Apia", "America/Havana",
		"Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kolkata", "Asia/Beirut", "Pacific/Kwajalein", "America/Asuncion"}
	rapid.Check(t, func(t *rapid.T) {
		loc := zone(t, rapid.SampledFrom(zones).Draw(t, "zone"))
		unit := CalendarUnit(rapid.IntRange(int(Day), int(Year)).Draw(t, "unit"))
		at := rapid.Int64Range(-1e12, 4e12).Draw(t, "at")
		start, end := calendarSpan(at, unit, loc)
		if at < start || at >= end {
			t.Fatalf("%s of %d: got [%d, %d)", unit, at, start, end)
		}
		for _, u := range []int64{start, end - 1} {
			if s, e := calendarSpan(u, unit, loc); s != start || e != end {
				t.Fatalf("%s of %d: got [%d, %d), but of %d within it [%d, %d)", unit, at, start, end, u, s, e)
			}
		}
		if s, _ := calendarSpan(end, unit, loc); s != end {
			t.Fatalf("%s after [%d, %d): begins at %d", unit, start, end, s)
		}
	})
}

func TestCalendarSpanAtTheEndsOfTime(t *testing.T) {
	for _, at := range []int64{MinTime, MinTime + 1, minCalendar - 1, minCalendar, maxCalendar, maxCalendar + 1, MaxTime - 1} {
		start, end := calendarSpan(at, Day, time.UTC)
		if at < start || at >= end {
			t.Errorf("day of %d: got [%d, %d)", at, start, end)
		}
	}
}

func TestTimeParser(t *testing.T) {
	for _, c := range []struct {
		name, zone, text string
		layouts          []string
		want, err        string
	}{
		{"RFC 3339", "", "2024-05-05T12:00:00.5+02:00", nil, "2024-05-05T10:00:00.5Z", ""},
		{"no zone and none set", "", "2024-05-05T12:00:00", nil, "", "has no time zone"},
		{"no zone, one set", "Europe/Berlin", "2024-05-05 12:00:00", nil, "2024-05-05T10:00:00Z", ""},
		{"own zone wins", "Europe/Berlin", "2024-05-05T12:00:00Z", nil, "2024-05-05T12:00:00Z", ""},
		{"date in a zone", "Europe/Berlin", "2024-05-05", nil, "2024-05-04T22:00:00Z", ""},
		{"layout of one's own", "", "05/May/2024:12:00:00 +0200", []string{"02/Jan/2006:15:04:05 -0700"}, "2024-05-05T10:00:00Z", ""},
		{"unknown abbreviation", "", "5 May 24 12:00 CEST", []string{"2 Jan 06 15:04 MST"}, "", "not known: CEST"},
		{"UTC by abbreviation", "", "5 May 24 12:00 UTC", []string{"2 Jan 06 15:04 MST"}, "2024-05-05T12:00:00Z", ""},
		{"garbage", "UTC", "yesterday", nil, "", "does not look like"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := NewTimeParser(c.zone, c.layouts...)
			if err != nil {
				t.Fatal(err)
			}
			ms, err := p.Parse(c.text)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("parse %q: got error %v, want one with %q", c.text, err, c.err)
				}
				return
			}
			if got := time.UnixMilli(ms).UTC().Format(time.RFC3339Nano); err != nil || got != c.want {
				t.Errorf("parse %q: got %s, %v, want %s", c.text, got, err, c.want)
			}
		})
	}
	for _, bad := range []string{"Local", "Mars/Olympus"} {
		if _, err := NewTimeParser(bad); err == nil {
			t.Errorf("zone %q: got no error", bad)
		}
	}
}
