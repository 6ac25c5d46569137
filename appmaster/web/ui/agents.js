// Agents and their containers.

import { h } from "./dom.js";
import { bytes, count, duration } from "./format.js";
import { course, now } from "./history.js";
import { bar, pill, spark, table } from "./parts.js";

export function agents(v, state) {
  const at = Date.parse(v.time);
  const flow = (a, way) => [spark(course(`a${a.id}.${way}`), `exchange, bytes ${way} a second`, { width: 80 }), " ", bytes(now(`a${a.id}.${way}`)) + "/s"];
  const lost = v.agents.filter((a) => a.last_logs?.length);
  return [
    h("p", { class: "dim" }, h("a", { href: "#/agent/appmaster" }, "The ApplicationMaster"), ` has ${bytes(v.process?.rss)} of memory and ${count(v.process?.goroutines)} goroutines. How containers ended: `, h("a", { href: "#/containers" }, "Containers"), "."),
    h("section", { class: "panel" }, table("Agents", [
      { id: "a", head: "Agent", sort: (a) => a.id, cell: (a) => [h("a", { href: `#/agent/${encodeURIComponent(a.id)}` }, a.id), h("br"), h("small", { class: "dim" }, a.container !== a.id ? a.container : "")] },
      { id: "h", head: "Host", sort: (a) => a.host, cell: (a) => [a.host || "–", h("br"), h("small", { class: "dim" }, a.exchange ?? "")] },
      { id: "s", head: "State", sort: (a) => a.state, cell: (a) => [pill(a.state), a.why && h("p", { class: "bad" }, a.why), h("small", { class: "dim" }, ` heard ${duration(at - Date.parse(a.heard))} ago`)] },
      { id: "n", head: "Slots used", num: true, sort: (a) => (a.slots ?? []).filter((x) => x.job).length, cell: (a) => `${(a.slots ?? []).filter((x) => x.job).length} of ${(a.slots ?? []).length}` },
      { id: "m", head: "Memory", num: true, sort: (a) => a.rss, cell: (a) => [spark(course(`a${a.id}.rss`), "resident memory", { width: 70 }), " ", bytes(a.rss), h("br"), h("small", { class: "dim" }, `heap ${bytes(a.heap)}, ${count(a.goroutines)} goroutines`)] },
      { id: "g", head: "Segments", num: true, sort: (a) => a.segments_used, cell: (a) => [bar(a.segments_used / (a.segments || 1), "segments in use"), " ", `${count(a.segments_used)} of ${count(a.segments)}`] },
      { id: "c", head: "Connections", num: true, sort: (a) => a.connections, cell: (a) => count(a.connections) },
      { id: "i", head: "Exchange in", num: true, sort: (a) => a.exchange_in, cell: (a) => flow(a, "in") },
      { id: "o", head: "out", num: true, sort: (a) => a.exchange_out, cell: (a) => flow(a, "out") },
    ], v.agents, { id: "agents", title: true, sort: state.sort.agents, key: (a) => a.id, empty: "no agent yet" })),
    lost.map((a) => h("section", { class: "panel", "data-key": `l${a.id}` }, h("h2", {}, `The last words of ${a.id}`), a.why && h("p", {}, a.why), h("pre", {}, a.last_logs.join("\n")))),
  ];
}
