package logs

import (
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// Components are those that a level can be set for.
var Components = []string{"appmaster", "agent", "exchange", "kafkasource", "kafkasink"}

// Levels say from which level on components log. They may be changed at any time, by any goroutine.
type Levels struct {
	now func() time.Time // immutable

	mu  sync.Mutex // guards changes
	set atomic.Pointer[settings]
}

// settings never change.
type settings struct {
	base      slog.Level
	overrides map[string]override
}

// override is the level of a component for a while.
type override struct {
	level slog.Level
	until time.Time // zero: for ever
}

// NewLevels has every component log from base on.
func NewLevels(base slog.Level) *Levels {
	l := &Levels{now: time.Now}
	l.set.Store(&settings{base: base})
	return l
}

// SetBase changes what components log that have no setting.
func (l *Levels) SetBase(base slog.Level) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := *l.set.Load()
	next.base = base
	l.set.Store(&next)
}

// Set has a component log from level on, for so long (0: for ever). Component "" is all that have no setting of their own.
func (l *Levels) Set(component string, level slog.Level, d time.Duration) {
	o := override{level: level}
	if d > 0 {
		o.until = l.now().Add(d)
	}
	l.change(func(m map[string]override) { m[component] = o })
}

// Reset has a component log as it was configured to. Component "" is all, also those that have a setting of their own.
func (l *Levels) Reset(component string) {
	l.change(func(m map[string]override) {
		if delete(m, component); component == "" {
			clear(m)
		}
	})
}

func (l *Levels) change(f func(map[string]override)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.set.Load()
	next := &settings{base: old.base, overrides: map[string]override{}}
	maps.Copy(next.overrides, old.overrides)
	now := l.now()
	maps.DeleteFunc(next.overrides, func(_ string, o override) bool { return o.over(now) })
	f(next.overrides)
	l.set.Store(next)
}

func (o override) over(now time.Time) bool { return !o.until.IsZero() && now.After(o.until) }

// enabled reports whether a component logs at a level.
func (l *Levels) enabled(component string, level slog.Level) bool {
	s := l.set.Load()
	if len(s.overrides) == 0 {
		return level >= s.base
	}
	now := l.now()
	for _, name := range [...]string{component, ""} {
		if o, ok := s.overrides[name]; ok && !o.over(now) {
			return level >= o.level
		}
	}
	return level >= s.base
}
