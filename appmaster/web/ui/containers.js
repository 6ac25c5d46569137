// Containers: what there is, what there was, and how each ended.

import { h } from "./dom.js";
import { clock, count, duration } from "./format.js";
import { fact, facts, pill, table } from "./parts.js";

const at = (t) => (t ? Date.parse(t) : NaN);
const since = (from, to) => (from && to ? duration(at(to) - at(from)) : "–");

/** ran is how long a container's process has been there. */
function ran(c, now) {
  const from = c.started ?? c.granted;
  return from ? (c.ended ? at(c.ended) : now) - at(from) : 0;
}

function end(c) {
  const x = c.exit;
  if (!x) return h("span", { class: "dim" }, "–");
  const told = x.told && !x.reason.includes(x.told);
  const more = told || x.last_logs?.length;
  return [
    x.reason,
    x.fix && !x.reason.includes(x.fix) && h("p", {}, h("b", {}, "What helps: "), x.fix),
    more && h("details", {}, h("summary", {}, told && x.last_logs?.length ? "YARN's words and the last log lines" : told ? "YARN's words" : `The last ${x.last_logs.length} log lines`),
      told && h("p", {}, x.told), x.last_logs?.length && h("pre", {}, x.last_logs.join("\n"))),
  ];
}

const status = (x) => (x?.status === undefined ? "–" : h("code", { class: x.failed ? "bad inline" : "" }, String(x.status)));

export function containers(v, state) {
  const now = Date.parse(v.time), all = v.held ?? [], n = v.containers;
  const there = all.filter((c) => !c.exit), gone = all.filter((c) => c.exit).reverse();
  const who = { id: "a", head: "Agent", sort: (c) => c.agent, cell: (c) => [h("a", { href: `#/agent/${encodeURIComponent(c.agent)}` }, c.agent), c.id !== c.agent && [h("br"), h("small", { class: "dim" }, c.id)]] };
  const host = { id: "h", head: "Host", sort: (c) => c.host, cell: (c) => c.host || "–" };
  const times = [
    { id: "g", head: "Granted", sort: (c) => at(c.granted) || 0, cell: (c) => (c.granted ? clock(c.granted) : c.former ? "to an earlier attempt" : "–") },
    { id: "w", head: "after", num: true, cell: (c) => since(c.asked, c.granted) },
    { id: "j", head: "Ready after", num: true, cell: (c) => since(c.granted, c.joined) },
  ];
  return [
    facts(fact("Asked for", count(n.asked)), fact("Granted", count(n.granted)), fact("There", count(there.length)), fact("Released", count(n.released), h("span", { class: "dim" }, "nobody needed them")),
      fact("Ended", count(n.ended)), fact("Failed", count(n.failed), h("span", { class: n.failed ? "bad" : "dim" }, "by their own fault"))),
    h("section", { class: "panel" }, table("Containers", [
      who, host, { id: "s", head: "State", sort: (c) => c.state, cell: (c) => pill(c.state) }, ...times,
      { id: "r", head: "Runs for", num: true, sort: (c) => ran(c, now), cell: (c) => duration(ran(c, now)) },
    ], there, { id: "held", title: true, sort: state.sort.held, key: (c) => `c${c.id}`, empty: "none yet" })),
    h("section", { class: "panel" }, table("Ended", [
      who, host, ...times.slice(0, 1),
      { id: "e", head: "Ended", sort: (c) => at(c.ended) || 0, cell: (c) => (c.ended ? clock(c.ended) : "–") },
      { id: "r", head: "Ran for", num: true, sort: (c) => ran(c, now), cell: (c) => duration(ran(c, now)) },
      { id: "x", head: "Status", num: true, sort: (c) => c.exit.status ?? 0, cell: (c) => status(c.exit) },
      { id: "y", head: "How", cell: end },
    ], gone, { id: "ended", title: true, sort: state.sort.ended, key: (c) => `c${c.id}`, empty: "none" })),
  ];
}
