// Latency: where the time goes on the way through each edge, of the records that were followed.

import { h } from "./dom.js";
import { count, span } from "./format.js";
import { fact, facts, table } from "./parts.js";
import { crossed, followed, hopsOf, mean, whole } from "./hops.js";
import { option } from "./configuration.js";

const PHASES = [
  ["fill", "filling a segment", "until a segment is full or its time to be flushed"],
  ["send_queue", "send queue", "behind other segments of the connection"],
  ["credit", "waiting for credit", "the consumer has no room: it is the slow one"],
  ["wire", "wire", "writing, network, reading"],
  ["receive_queue", "receive queue", "until the consumer takes it"],
];
// Only where channels wait for each other.
const ALIGNMENT = ["alignment", "alignment", "blocked until the other channels had come to the same barrier"];

const hue = (i) => `hue${[0, 2, 1, 3, 4, 5][i]}`; // waiting for credit in the colour of back-pressure

function stack(phases, by, most) {
  const all = whole(by);
  const said = phases.map(([id, name]) => `${name} ${span(1e9 * mean(by.get(id)))}`).join(", ");
  return h("div", { class: "stack", role: "img", "aria-label": said, title: said, style: `width:${(100 * all / (most || 1)).toFixed(1)}%` },
    phases.map(([id], i) => h("i", { class: hue(i), style: `width:${(100 * mean(by.get(id)) / (all || 1)).toFixed(2)}%` })));
}

export function latency(v, state, arg, draw) {
  const ui = option("trace.ui-url", draw);
  const edges = v.edges.map((e, i) => ({ ...e, i, by: hopsOf(v, i) })).filter((e) => e.by.size);
  const name = (id) => v.vertices.find((x) => x.id === id)?.name ?? id;
  const base = ui && /^https?:/.test(ui) && ui.replace(/(\/trace)?\/?\{trace\}.*$/, "").replace(/\/$/, "");
  const search = (more) => `${base}/search?service=${encodeURIComponent(v.process?.service || v.job)}&lookback=1h&limit=50${more}`;
  const link = base && h("p", {}, h("a", { href: search(""), rel: "noreferrer" }, "The traces of this job's records"));
  const traces = (e) => base && h("a", { class: "traces", href: search(`&operation=exchange&tags=${encodeURIComponent(JSON.stringify({ "heddle.edge": String(e.i) }))}`), rel: "noreferrer" }, "Traces through this edge");
  if (!edges.length) {
    return [h("section", { class: "panel" }, h("h2", {}, "Latency"),
      h("p", {}, v.edges.length ? "No record has been followed through the exchange yet. Records are followed once there is somewhere to send their traces: set " : "The job has no exchange. ", v.edges.length ? [h("code", {}, "trace.endpoint"), " or ", h("code", {}, "OTEL_EXPORTER_OTLP_ENDPOINT"), "."] : ""), link)];
  }
  const phases = edges.some((e) => e.by.has("alignment")) ? [...PHASES, ALIGNMENT] : PHASES;
  const most = Math.max(...edges.map((e) => whole(e.by)));
  return [
    h("p", { class: "legend" }, phases.map(([, text, why], i) => h("span", { class: "key", title: why }, h("i", { class: hue(i) }), text))),
    link,
    edges.map((e) => h("section", { class: "panel", "data-key": `e${e.i}` },
      h("h2", {}, h("a", { href: `#/vertex/${e.from}` }, name(e.from)), " → ", h("a", { href: `#/vertex/${e.to}` }, name(e.to)), h("small", { class: "dim" }, ` ${e.partitioning}`)), traces(e),
      facts(
        fact(crossed(e.by) ? "Between agents, on average" : "On average", span(1e9 * whole(e.by))),
        fact("Followed", count(followed(e.by)), crossed(e.by) < followed(e.by) && h("span", { class: "dim" }, `${count(followed(e.by) - crossed(e.by))} within an agent`))),
      stack(phases, e.by, most),
      table("Phases", [
        { head: "Phase", cell: ([, text, why]) => [text, h("br"), h("small", { class: "dim" }, why)] },
        { head: "Mean", num: true, cell: ([id]) => span(1e9 * mean(e.by.get(id))) },
        { head: "Half below", num: true, cell: ([id]) => span(1e9 * (e.by.get(id)?.p50 ?? 0)) },
        { head: "99 % below", num: true, cell: ([id]) => span(1e9 * (e.by.get(id)?.p99 ?? 0)) },
        { head: "Records", num: true, cell: ([id]) => count(e.by.get(id)?.count ?? 0) },
      ], phases, { key: ([id]) => id }))),
  ];
}
