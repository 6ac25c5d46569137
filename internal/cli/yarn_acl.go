package cli

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
)

// aclOf are the users and groups that an access control list of Hadoop's names: both separated by commas, with a space between them.
func aclOf(text string) (users, groups []string, all bool) {
	text, rest, _ := strings.Cut(text, " ")
	list := func(s string) []string {
		return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
	}
	users, groups = list(text), list(rest)
	return users, groups, slices.Contains(users, "*") || slices.Contains(groups, "*")
}

// named reports whether an access control list names a user or a group of theirs. Groups are only asked for if they matter.
func named(acl, user string, groupsOf func(string) []string) bool {
	users, groups, all := aclOf(acl)
	if all || user != "" && slices.Contains(users, user) {
		return true
	}
	return user != "" && len(groups) > 0 && slices.ContainsFunc(groupsOf(user), func(g string) bool { return slices.Contains(groups, g) })
}

const (
	groupsGood = 5 * time.Minute  // how long a user's groups are believed, as by Hadoop's daemons
	groupsBad  = 10 * time.Second // and that they are not known
	groupsMost = 1000             // users that are remembered
)

// groupBook remembers the groups of users.
type groupBook struct {
	// Immutable.
	ask func(ctx context.Context, user string) ([]string, error)
	log *slog.Logger

	mu    sync.Mutex // guards users
	users map[string]groupsAt
}

type groupsAt struct {
	groups []string
	until  time.Time
}

// of are the groups of a user; none if they can't be learned.
func (b *groupBook) of(user string) []string {
	now := time.Now()
	b.mu.Lock()
	g, ok := b.users[user]
	b.mu.Unlock()
	if ok && now.Before(g.until) {
		return g.groups
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	groups, err := b.ask(ctx, user)
	life := groupsGood
	if err != nil {
		life = groupsBad
		b.log.Warn("cannot tell by groups whether somebody may see the application", "user", user, "err", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.users == nil || len(b.users) >= groupsMost {
		b.users = map[string]groupsAt{}
	}
	b.users[user] = groupsAt{groups, time.Now().Add(life)}
	return groups
}

// groups asks the default file system's NameNode.
func (h *hadoop) groups(ctx context.Context, user string) ([]string, error) {
	cfg, err := h.hdfs()
	if err != nil {
		return nil, err
	}
	def, err := h.conf.DefaultFS()
	if err != nil {
		return nil, err
	}
	cfg.NameNodes, cfg.Timeout = def.NameNodes, 5*time.Second
	return hdfs.Groups(ctx, cfg, user)
}
