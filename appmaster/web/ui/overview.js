// The overview: how the job does as a whole, its graph, its vertices, what went wrong.

import { h } from "./dom.js";
import { bytes, clock, count, lag, percent, rate } from "./format.js";
import { course, now } from "./history.js";
import { bar, fact, facts, load, pill, spark, table } from "./parts.js";
import { graph } from "./graph.js";

/** states writes counts by state, such as "2 running". */
export const states = (tasks) => Object.entries(tasks ?? {}).filter(([, n]) => n).map(([name, n]) => h("span", { class: `pill small ${name}` }, `${n} ${name}`));

export function cause(v) {
  const c = v.cause;
  if (!c) return null;
  return h("section", { class: "cause", role: "alert" },
    h("h2", {}, `The job ${v.state === "failed" || v.state === "failing" ? "failed" : "had a failure"}: ${c.kind}`),
    h("p", {}, c.message),
    h("p", { class: "dim" }, [c.operator && `operator ${c.operator}`, c.vertex && `task ${c.vertex}${c.subtask !== undefined ? ` (${c.subtask})` : ""}`, c.agent && `agent ${c.agent}`, c.host && `host ${c.host}`, clock(c.time)].filter(Boolean).join(", ")),
    c.last_logs?.length && h("details", { open: true }, h("summary", {}, "Its last log lines"), h("pre", {}, c.last_logs.join("\n"))));
}

function summary(v) {
  const fed = new Set(v.edges.map((e) => e.to));
  const first = v.vertices.filter((x) => !fed.has(x.id));
  const marks = v.vertices.map((x) => x.watermark).filter((x) => x !== undefined);
  const alive = v.agents.filter((a) => a.state === "alive");
  const behind = (v.sources ?? []).flatMap((s) => s.splits ?? []).reduce((sum, p) => sum + (p.end >= 0 && p.position >= 0 ? Math.max(0, p.end - p.position) : 0), 0);
  const lagging = (v.sources ?? []).some((s) => s.splits?.some((p) => p.end >= 0));
  return facts(
    fact("Read", rate(now("read")), spark(course("read"), "records read a second", { width: 110 })),
    fact("Written", rate(now("written")), spark(course("written"), "records written a second", { width: 110 })),
    fact("Records read", count(first.reduce((n, x) => n + (x.records_out || x.records_in), 0))),
    lagging && fact("Not yet read", count(behind)),
    fact("Event time behind", marks.length ? lag(Math.min(...marks), Date.parse(v.time)) : "–"),
    fact("Slots in use", `${v.slots.total - v.slots.free} of ${v.slots.total}`, bar((v.slots.total - v.slots.free) / (v.slots.total || 1), "slots in use")),
    fact("Agents", `${alive.length}${alive.length < v.agents.length ? ` of ${v.agents.length}` : ""}`),
    fact("Memory", bytes(alive.reduce((n, a) => n + a.rss, 0))));
}

const COLUMNS = [
  { id: "name", head: "Vertex", sort: (x) => x.name, cell: (x) => h("a", { href: `#/vertex/${x.id}` }, x.name) },
  { id: "tasks", head: "Tasks", cell: (x) => states(x.tasks) },
  { id: "load", head: "Busy, blocked", sort: (x) => x.busy + x.blocked, cell: (x) => [load(x.busy, x.blocked), h("span", { class: "nums dim" }, `${percent(x.busy)}, ${percent(x.blocked)}`)] },
  { id: "in", head: "Records in", num: true, sort: (x) => x.records_in, cell: (x) => count(x.records_in) },
  { id: "inr", head: "a second", num: true, sort: (x) => x.in_rate, cell: (x) => [spark(course(`v${x.id}.in`), "records in a second", { width: 80 }), " ", rate(x.in_rate)] },
  { id: "out", head: "Records out", num: true, sort: (x) => x.records_out, cell: (x) => count(x.records_out) },
  { id: "outr", head: "a second", num: true, sort: (x) => x.out_rate, cell: (x) => [spark(course(`v${x.id}.out`), "records out a second", { width: 80 }), " ", rate(x.out_rate)] },
];

export function overview(v, state) {
  const at = Date.parse(v.time);
  const columns = [...COLUMNS, { id: "mark", head: "Event time behind", num: true, sort: (x) => -(x.watermark ?? 0), cell: (x) => lag(x.watermark, at) }];
  return [
    v.waiting && h("section", { class: "waiting" }, h("strong", {}, "Waiting for "), v.waiting),
    cause(v),
    summary(v),
    h("section", { class: "panel" }, h("h2", {}, "Job graph"), h("div", { class: "scroll graphbox", tabindex: 0, "aria-label": "The job graph, scrolls" }, graph(v)), legend()),
    h("section", { class: "panel" }, table("Vertices", columns, v.vertices, { id: "vertices", title: true, sort: state.sort.vertices, key: (x) => `v${x.id}` })),
    v.warnings?.length && h("section", { class: "panel" }, table("Warnings", [
      { head: "Time", cell: (w) => clock(w.time) }, { head: "What happened", cell: (w) => w.message },
    ], [...v.warnings].reverse(), { title: true })),
  ];
}

const legend = () => h("p", { class: "legend dim" }, [["busy", "busy"], ["blocked", "blocked by what comes after"], ["idle", "idle"]].map(([id, text]) => h("span", { class: "key" }, h("i", { class: id }), text)));

export { pill };
