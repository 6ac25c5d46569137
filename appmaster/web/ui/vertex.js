// One vertex: its operators with their counters, its subtasks, and how unevenly they are loaded.

import { h } from "./dom.js";
import { count, lag, percent, rate } from "./format.js";
import { course, now } from "./history.js";
import { bar, fact, facts, load, pill, spark, table } from "./parts.js";
import { states } from "./overview.js";

/** skew is by how much the busiest subtask has more than the mean. */
function skew(list) {
  const sum = list.reduce((a, b) => a + b, 0);
  return sum ? Math.max(...list) / (sum / list.length) : 1;
}

export function vertex(v, state, arg) {
  const x = v.vertices.find((y) => String(y.id) === arg);
  if (!x) return h("p", {}, `There is no vertex ${arg}: the job has 0 to ${v.vertices.length - 1}.`);
  const at = Date.parse(v.time), tasks = x.subtasks ?? [];
  const has = tasks.some((t) => t.records_in) ? "in" : "out";
  const amount = (t) => (has === "in" ? t.records_in : t.records_out);
  const most = Math.max(...tasks.map(amount), 1);
  const factor = skew(tasks.map(amount));
  const host = new Map(v.agents.map((a) => [a.id, a.host]));
  const ins = v.edges.filter((e) => e.to === x.id), outs = v.edges.filter((e) => e.from === x.id);
  const link = (id) => h("a", { href: `#/vertex/${id}` }, v.vertices.find((y) => y.id === id)?.name ?? id);
  return [
    h("p", { class: "crumbs" }, h("a", { href: "#/overview" }, "Overview"), " / ", h("span", {}, x.name)),
    h("h2", {}, x.name),
    h("p", { class: "dim" }, ins.length ? ["from ", ins.map((e, i) => [i ? ", " : "", link(e.from), ` by ${e.partitioning}`])] : "a source", outs.length ? ["; to ", outs.map((e, i) => [i ? ", " : "", link(e.to), ` by ${e.partitioning}`])] : "; the end of the graph", `; slot sharing group ${x.slot_group || "default"}`),
    facts(
      fact("Tasks", states(x.tasks)),
      fact("In", rate(x.in_rate), spark(course(`v${x.id}.in`), "records in a second", { width: 110 })),
      fact("Out", rate(x.out_rate), spark(course(`v${x.id}.out`), "records out a second", { width: 110 })),
      fact("Blocked", percent(x.blocked), spark(course(`v${x.id}.blocked`), "share of time blocked", { width: 110, max: 1 })),
      fact("Skew", factor.toFixed(2) + "×", h("span", { class: "dim" }, "most loaded to mean")),
      fact("Event time behind", lag(x.watermark, at))),
    h("section", { class: "panel" }, table("Operators", [
      { head: "Operator", cell: (o) => o.name }, { head: "Kind", cell: (o) => o.kind },
      { head: "Counters", cell: (o) => h("span", { class: "counters" }, Object.entries(o.counters ?? {}).sort().map(([k, n]) => h("span", {}, h("b", {}, k), " ", count(n)))) },
    ], x.operators ?? [], { title: true })),
    h("section", { class: "panel" }, table("Subtasks", [
      { id: "i", head: "Subtask", sort: (t) => t.index, cell: (t) => String(t.index) },
      { id: "s", head: "State", sort: (t) => t.state, cell: (t) => [pill(t.state), t.attempt > 0 ? h("span", { class: "dim" }, ` attempt ${t.attempt}`) : null, t.error && h("p", { class: "bad" }, t.error)] },
      { id: "a", head: "Agent", sort: (t) => t.agent ?? "", cell: (t) => (t.agent ? [t.agent, h("span", { class: "dim" }, ` ${host.get(t.agent) ?? ""} slot ${t.slot}`)] : "–") },
      { id: "l", head: "Busy, blocked", sort: (t) => t.busy + t.blocked, cell: (t) => [load(t.busy, t.blocked), h("span", { class: "nums dim" }, `${percent(t.busy)}, ${percent(t.blocked)}`)] },
      { id: "n", head: `Records ${has}`, num: true, sort: amount, cell: (t) => [bar(amount(t) / most, "share of the most loaded subtask"), " ", count(amount(t))] },
      { id: "r", head: "a second", num: true, sort: (t) => now(`t${x.id}.${t.index}.${has}`), cell: (t) => [spark(course(`t${x.id}.${t.index}.${has}`), "records a second", { width: 70 }), " ", rate(now(`t${x.id}.${t.index}.${has}`))] },
      { id: "qi", head: "Queued in, pool", num: true, sort: (t) => t.in_queued, cell: (t) => h("span", { title: `${count(t.credit_in ?? 0)} segments of credit that producers of other agents may use` }, count(t.in_queued), h("span", { class: "dim" }, ` ${percent(t.in_pool)}`)) },
      { id: "qo", head: "Queued out, pool", num: true, sort: (t) => t.out_queued, cell: (t) => h("span", { title: `${count(t.credit_out ?? 0)} segments of credit from consumers of other agents` }, count(t.out_queued), h("span", { class: "dim" }, ` ${percent(t.out_pool)}`)) },
      { id: "c", head: "Credit", num: true, sort: (t) => t.starved ?? 0, cell: (t) => h("span", { title: "segments that consumers of other agents would take now; channels to them that wait for credit" }, count(t.credit_out ?? 0), t.starved ? h("span", { class: "bad inline starved" }, `, ${count(t.starved)} starved`) : null) },
      { id: "w", head: "Event time behind", num: true, sort: (t) => -(t.watermark ?? 0), cell: (t) => lag(t.watermark, at) },
    ], tasks, { id: "subtasks", title: true, sort: state.sort.subtasks, key: (t) => `t${t.index}` })),
  ];
}
