// The job graph: layers from left to right, drawn by hand in SVG.

import { s } from "./dom.js";
import { percent, rate, short, span } from "./format.js";
import { hopsOf, mean, wait, whole } from "./hops.js";

const W = 236, H = 112, GAPX = 100, GAPY = 26, PAD = 10;

/** layers puts each vertex as far right as its longest way from a source. */
function layers(vertices, edges) {
  const depth = new Map(vertices.map((v) => [v.id, 0]));
  for (let i = 0; i < vertices.length; i++) {
    for (const e of edges) depth.set(e.to, Math.max(depth.get(e.to), depth.get(e.from) + 1));
  }
  const out = [];
  for (const v of vertices) (out[depth.get(v.id)] ??= []).push(v.id);
  return out;
}

/** order sorts each layer by where its neighbours are, to and fro, so that few edges cross. */
function order(rows, edges) {
  const place = new Map();
  const settle = () => rows.forEach((r) => r.forEach((id, i) => place.set(id, i - (r.length - 1) / 2)));
  settle();
  for (let pass = 0; pass < 4; pass++) {
    const [to, from] = pass % 2 ? ["from", "to"] : ["to", "from"];
    for (const r of rows) {
      const mean = new Map(r.map((id) => {
        const near = edges.filter((e) => e[to] === id).map((e) => place.get(e[from]));
        return [id, near.length ? near.reduce((a, b) => a + b, 0) / near.length : place.get(id)];
      }));
      r.sort((a, b) => mean.get(a) - mean.get(b));
      settle();
    }
  }
}

/** layout gives each vertex its corner, and the whole its size. */
export function layout(vertices, edges) {
  const rows = layers(vertices, edges);
  order(rows, edges);
  const tall = Math.max(...rows.map((r) => r.length), 1);
  const at = new Map();
  rows.forEach((r, x) => r.forEach((id, y) => at.set(id, {
    x: PAD + x * (W + GAPX),
    y: PAD + (y + (tall - r.length) / 2) * (H + GAPY),
  })));
  return { at, width: 2 * PAD + rows.length * W + (rows.length - 1) * GAPX, height: 2 * PAD + tall * H + (tall - 1) * GAPY };
}

function lines(name, most = 27) {
  const parts = name.split(/(?<= → |, )/);
  const out = [""];
  for (const p of parts) {
    if ((out.at(-1) + p).trimEnd().length > most && out.at(-1)) out.push(p);
    else out[out.length - 1] += p;
  }
  // Characters of East Asia take up two places, and none is cut in half.
  const places = (t) => [...t].reduce((n, c) => n + (c >= "\u2e80" ? 2 : 1), 0);
  const cut = (t) => {
    if (places(t.trimEnd()) <= most) return t.trimEnd();
    const all = [...t];
    while (places(all.join("")) > most - 2) all.pop();
    return all.join("") + "…";
  };
  return out.length > 2 ? [cut(out[0]), cut(out.slice(1).join(""))] : out.map(cut);
}

/** mood is the one word for how a vertex does. */
export function mood(v) {
  const t = v.tasks ?? {};
  if (t.failed) return "failed";
  if (v.blocked > 0.5) return "held";
  if (v.busy > 0.8) return "hot";
  if (t.finished === v.parallelism) return "finished";
  return t.running ? "running" : "waiting";
}

function vertex(v, p, feeds) {
  const idle = Math.max(0, 1 - v.busy - v.blocked), inner = W - 28;
  const widths = [v.busy, v.blocked, idle].map((x) => x * inner);
  const flow = [v.records_in > 0 || !feeds ? `in ${rate(v.in_rate)}` : null, v.records_out > 0 || feeds ? `out ${rate(v.out_rate)}` : null].filter(Boolean).join(", ");
  const said = `${v.name}, ${v.parallelism} subtasks, ${flow}, busy ${percent(v.busy)}, blocked ${percent(v.blocked)}`;
  return s("a", { href: `#/vertex/${v.id}`, class: `vertex ${mood(v)}`, "data-key": `v${v.id}`, "aria-label": said },
    s("title", {}, said),
    s("rect", { x: p.x, y: p.y, width: W, height: H, rx: 10 }),
    lines(v.name).map((t, i) => s("text", { x: p.x + 14, y: p.y + 25 + 17 * i, class: "name" }, t)),
    s("text", { x: p.x + W - 14, y: p.y + H - 34, class: "times" }, `×${v.parallelism}`),
    s("text", { x: p.x + 14, y: p.y + H - 34, class: "flow" }, flow),
    s("rect", { class: "l-busy", x: p.x + 14, y: p.y + H - 22, width: Math.max(0, widths[0]), height: 7 }),
    s("rect", { class: "l-blocked", x: p.x + 14 + widths[0], y: p.y + H - 22, width: Math.max(0, widths[1]), height: 7 }),
    s("rect", { class: "l-idle", x: p.x + 14 + widths[0] + widths[1], y: p.y + H - 22, width: Math.max(0, widths[2]), height: 7 }));
}

function edge(e, at, byID, by) {
  const a = at.get(e.from), b = at.get(e.to);
  const x1 = a.x + W, y1 = a.y + H / 2, x2 = b.x, y2 = b.y + H / 2, bend = Math.max(40, (x2 - x1) / 2);
  const from = byID.get(e.from);
  const weight = 1.5 + Math.min(4.5, Math.log10(1 + (from?.out_rate ?? 0)) * 0.75);
  const held = (from?.blocked ?? 0) > 0.5;
  const mx = x2 - GAPX / 2, my = (y1 + y2) / 2 + (y1 === y2 ? 0 : (y2 - y1) / 4);
  const waits = wait(by), all = whole(by);
  const said = [`${e.partitioning}, ${rate(from?.out_rate)}`, all > 0 ? `${span(1e9 * all)} on the way, ${span(1e9 * mean(by.get("credit")))} of it waiting for credit` : null,
    waits ? "the consumer is slow" : null].filter(Boolean).join("; ");
  return s("g", { class: `edge ${held || waits ? "held" : ""} ${waits ? "waits" : ""}`, "data-key": `e${e.from}-${e.to}`, role: "img", "aria-label": said }, s("title", {}, said),
    s("path", { d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2 - 7} ${y2}`, "stroke-width": weight.toFixed(1) }),
    s("path", { class: "tip", d: `M${x2 - 9} ${y2 - 5}l9 5l-9 5z` }),
    s("text", { x: mx, y: my - 8 }, e.partitioning),
    s("text", { x: mx, y: my + 17, class: "dim" }, `${short(from?.out_rate ?? 0)}/s`),
    waits ? s("text", { x: mx, y: my + 32, class: "wait" }, `credit ${span(1e9 * waits)}`) : null);
}

/** graph draws the job. */
export function graph(v) {
  const { vertices, edges } = v;
  const { at, width, height } = layout(vertices, edges);
  const byID = new Map(vertices.map((v) => [v.id, v]));
  const feeds = new Set(edges.map((e) => e.from));
  return s("svg", { class: "graph", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": "The job graph" },
    edges.map((e, i) => edge(e, at, byID, hopsOf(v, i))), vertices.map((v) => vertex(v, at.get(v.id), feeds.has(v.id))));
}
