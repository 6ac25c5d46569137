package explain

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/yarnclient/report"
)

// accepted explains why an application's master does not run yet. The ResourceManager puts what the capacity scheduler says of it into the diagnostics.
func (x *explanation) accepted() {
	x.r.Waits = Master
	x.r.Headline = "YARN has accepted it, and its ApplicationMaster does not run yet"
	d := x.f.App.Diagnostics
	switch {
	case x.f.App.AMContainer != "", strings.Contains(d, "waiting for AM container to Register"), strings.Contains(d, "waiting for AM container to be launched"):
		x.starting()
		return
	case strings.Contains(d, "AM resource limit exceeded"):
		x.masters(d)
	case strings.Contains(d, "cluster resource is empty"):
		x.nodes("", report.Resource{})
	}
	a, ok := x.masterAsk(d)
	if ok {
		x.r.Asks = []report.Ask{a}
	}
	if !x.has("masters-limit", "masters-limit-user") {
		x.ask(a, !ok)
		x.activities()
	}
	if strings.Contains(d, "black listed") {
		x.add(Notes, "master-blacklist", "The last attempt's master failed on some node, and YARN avoids that node for the next.", "")
	}
	if len(x.r.Findings) == 0 {
		text := "Neither the queue's limits nor the nodes show a reason."
		if d != "" {
			text += " YARN says: " + firstLine(d)
		}
		x.add(Delays, "unknown", text, "Ask again in some seconds.")
	}
	x.settle()
}

// startTime is how long a master's start takes at most if all goes well.
const startTime = 20 * time.Second

// starting explains a master that has its container and has not registered. YARN itself says nothing more of that until it gives it up.
func (x *explanation) starting() {
	a := x.f.App
	x.r.Headline = "Its ApplicationMaster's container is given, and starts"
	fix := "Look at what it wrote: `heddle logs " + a.ID + "`. Wait for the next attempt, or end it (`heddle kill " + a.ID + "`) and submit it again."
	restarted := x.f.Manager.After(a.Started) && !a.Started.IsZero() && x.f.Manager.After(a.Launched)
	since := a.Launched
	if restarted {
		since = x.f.Manager
	}
	age := x.f.Now.Sub(since).Round(time.Second)
	switch {
	case since.IsZero() || age < startTime && !restarted:
		x.add(Delays, "starting", "YARN has given the ApplicationMaster a container. Its files are being brought to the node, or it starts and has not registered yet.",
			"If that lasts longer than a minute, look at what it wrote: `heddle logs "+a.ID+"`. A node that can't run it shows there, or as a new attempt.")
	case restarted:
		x.add(Delays, "manager-restarted", fmt.Sprintf("The ResourceManager was started anew %s ago, after it had given the ApplicationMaster a container, which it may not have started before that. It waits for it to register%s.", age, x.givesUp(age)), fix)
	default:
		x.add(Delays, "silent-start", fmt.Sprintf("The ApplicationMaster's container was started %s ago, and it has not registered with YARN%s.", age, x.givesUp(age)), fix)
	}
}

// givesUp says when YARN gives a master up that has been silent for so long.
func (x *explanation) givesUp(age time.Duration) string {
	const option = "yarn.am.liveness-monitor.expiry-interval-ms"
	switch left := x.f.Expiry - age; {
	case x.f.Expiry <= 0:
		return ""
	case left > 0:
		return fmt.Sprintf(", and gives it up after %s (%s), in about %s: then another attempt starts, if there may be one", x.f.Expiry, option, left)
	default:
		return fmt.Sprintf(", and is about to give it up, after %s and a third more (%s): then another attempt starts, if there may be one", x.f.Expiry, option)
	}
}

// masterAsk is what the master wants, as far as it is told.
func (x *explanation) masterAsk(d string) (report.Ask, bool) {
	a := report.Ask{Where: "*", Label: x.f.App.AMLabel, Count: 1}
	if a.Label == "" {
		a.Label = x.f.App.Label
	}
	if asks := open(x.f.App.Asks); len(asks) > 0 {
		o := asks[0]
		if o.Label == "" {
			o.Label = a.Label
		}
		return o, true
	}
	if r, ok := amount(d, "AM Resource Request"); ok {
		a.Each = r
		return a, true
	}
	return a, false
}

// masters explains a queue that has no more room for masters.
func (x *explanation) masters(d string) {
	ask, _ := amount(d, "AM Resource Request")
	queue, okQueue := amount(d, "Queue Resource Limit for AM")
	user, okUser := amount(d, "User AM Resource Limit of the queue")
	used, _ := amount(d, "Queue AM Resource Usage")
	name := x.f.App.Queue
	if okUser && okQueue && (!used.Plus(ask).Fits(user) && used.Plus(ask).Fits(queue) || strings.Contains(d, "User's AM resource limit exceeded")) {
		x.add(Delays, "masters-limit-user", fmt.Sprintf("The ApplicationMasters of one user in queue %s may have %s together, and yours have so much that another %s is too much.", name, user, ask),
			"End one of your applications there (`heddle list`), give the master less memory (appmaster.memory), use another queue (--queue), or have user-limit-factor or maximum-am-resource-percent of the queue raised.")
		return
	}
	text := fmt.Sprintf("Queue %s lets ApplicationMasters use no more", name)
	if okQueue {
		text = fmt.Sprintf("Queue %s gives ApplicationMasters %s in all; they use %s, and this one wants %s.", name, queue, used, ask)
	}
	x.add(Delays, "masters-limit", text,
		"End an application of that queue, give the master less memory (appmaster.memory), use another queue (--queue), or have yarn.scheduler.capacity."+name+".maximum-am-resource-percent raised.")
}

var amounts = regexp.MustCompile(`<memory:(-?\d+), vCores:(-?\d+)`)

// amount reads "name = <memory:256, vCores:1>".
func amount(text, name string) (report.Resource, bool) {
	i := strings.Index(text, name)
	if i < 0 {
		return report.Resource{}, false
	}
	rest := text[i+len(name):]
	if !strings.HasPrefix(rest, " = ") {
		return report.Resource{}, false
	}
	m := amounts.FindStringSubmatch(rest[:min(len(rest), 80)])
	if m == nil {
		return report.Resource{}, false
	}
	mb, err1 := strconv.ParseInt(m[1], 10, 64)
	cores, err2 := strconv.ParseInt(m[2], 10, 64)
	return report.Resource{MemoryMB: mb, VCores: cores}, err1 == nil && err2 == nil
}
