// Sources: splits, who reads them, how far behind they are.

import { h } from "./dom.js";
import { count, rate } from "./format.js";
import { course, now } from "./history.js";
import { bar, fact, facts, spark, table } from "./parts.js";

const behind = (p) => (p.end >= 0 && p.position >= 0 ? Math.max(0, p.end - p.position) : -1);

export function sources(v, state) {
  if (!v.sources?.length) return h("p", { class: "dim" }, "The job has no source with splits.");
  const agent = new Map();
  for (const x of v.vertices) for (const t of x.subtasks ?? []) agent.set(`${x.id}.${t.index}`, t.agent);
  return v.sources.map((src) => {
    const splits = src.splits ?? [];
    const key = (p) => `p${src.vertex}.${p.id}`;
    const most = splits.reduce((n, p) => Math.max(n, behind(p)), 1);
    const total = splits.reduce((n, p) => n + Math.max(0, behind(p)), 0);
    return h("section", { class: "panel", "data-key": `${src.vertex}.${src.name}` },
      h("h2", {}, src.name),
      facts(
        fact("Splits", count(splits.length), h("span", { class: "dim" }, src.final ? "no more will come" : "more may be found")),
        fact("Not yet read", splits.some((p) => behind(p) >= 0) ? count(total) : "–"),
        fact("Read", rate(splits.reduce((n, p) => n + now(key(p)), 0))),
        splits.some((p) => p.trouble) && fact("In trouble", count(splits.filter((p) => p.trouble).length))),
      table(`Splits of ${src.name}`, [
        { id: "id", head: "Split", sort: (p) => p.id, cell: (p) => [p.id, p.trouble && h("p", { class: "bad" }, p.trouble)] },
        { id: "o", head: "Reader", sort: (p) => p.subtask, cell: (p) => [`subtask ${p.subtask}`, h("span", { class: "dim" }, ` ${agent.get(`${src.vertex}.${p.subtask}`) ?? ""}`)] },
        { id: "p", head: "Position", num: true, sort: (p) => p.position, cell: (p) => count(p.position) },
        { id: "e", head: "End", num: true, sort: (p) => p.end, cell: (p) => count(p.end) },
        { id: "l", head: "Behind", num: true, sort: behind, cell: (p) => [behind(p) >= 0 && bar(behind(p) / most, "share of the largest lag", "blocked"), " ", count(behind(p))] },
        { id: "r", head: "a second", num: true, sort: (p) => now(key(p)), cell: (p) => [spark(course(key(p)), "positions a second", { width: 70 }), " ", rate(now(key(p)))] },
      ], splits, { id: "splits", sort: state.sort.splits, key: (p) => p.id, empty: "no split yet" }));
  });
}
