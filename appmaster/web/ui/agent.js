// One agent, or the ApplicationMaster: its figures, its tasks, its container, and profiles of its process.

import { h } from "./dom.js";
import { bytes, clock, count, duration } from "./format.js";
import { course, now } from "./history.js";
import { bar, fact, facts, pill, spark, table } from "./parts.js";
import { ask, act } from "./app.js";

const MASTER = "appmaster";
const KINDS = [
  ["cpu", "30s", "CPU, 30 s", "what it computes; for go tool pprof"], ["heap", "", "Heap", "who holds memory; for go tool pprof"],
  ["stacks", "", "Stacks", "where each goroutine stands; text"], ["trace", "5s", "Trace, 5 s", "what goroutines and the scheduler do; for go tool trace"],
];
const profiles = { list: null, error: "", at: 0, busy: false };

function refresh(draw) {
  if (profiles.busy || Date.now() - profiles.at < 900) return;
  profiles.busy = true;
  ask("api/profiles").then((l) => (profiles.list = l), (e) => (profiles.error = e.message))
    .finally(() => { Object.assign(profiles, { at: Date.now(), busy: false }); draw(); });
}

/** profile begins a profile: the button that asks for it says of whom and which. */
export function profile(button, draw) {
  const q = new URLSearchParams({ of: button.dataset.of, kind: button.dataset.kind, for: button.dataset.for });
  profiles.error = "";
  act(`api/profiles?${q}`).then((p) => (profiles.list = [...(profiles.list ?? []), p]), (e) => (profiles.error = e.message)).finally(() => { profiles.at = 0; draw(); });
}

function panel(name, v, state, draw) {
  if (!state.session?.may?.includes("modify")) return h("p", { class: "dim" }, "Profiles are for those who may change the application.");
  refresh(draw);
  const mine = (profiles.list ?? []).filter((p) => p.of === name).reverse();
  const busy = mine.some((p) => p.state === "running");
  const left = (p) => Math.max(0, Date.parse(p.ready) - Date.parse(v.time));
  return h("section", { class: "panel" }, h("h2", {}, "Profiles of its process"),
    h("p", { class: "tabs", role: "group", "aria-label": "Take a profile" }, KINDS.map(([kind, d, text, what]) =>
      h("button", { "data-do": "profile", "data-of": name, "data-kind": kind, "data-for": d, title: what, disabled: busy }, text))),
    profiles.error && h("p", { class: "bad", role: "alert" }, profiles.error),
    mine.length > 0 && table("Profiles", [
      { head: "Profile", cell: (p) => p.kind }, { head: "Begun", cell: (p) => clock(p.begun) },
      { head: "State", cell: (p) => (p.state === "running" ? [pill("taking"), " ", left(p) ? `${duration(left(p))} left` : ""] : p.state === "failed" ? [pill("failed"), h("p", { class: "bad" }, p.error)]
        : [h("a", { href: `api/profiles/${p.id}/data`, download: "" }, "Download"), h("span", { class: "dim" }, ` ${bytes(p.size)}`)]) },
    ], mine, { key: (p) => `p${p.id}` }),
    h("p", { class: "dim" }, "They hold names of functions and counts, no records. In the terminal: ", h("code", {}, `heddle profile ${v.app} ${name === MASTER ? "--master" : `--agent ${name}`} --cpu 30s`)));
}

function own(v) {
  const p = v.process ?? {};
  return facts(fact("Memory", bytes(p.rss)), fact("Heap", bytes(p.heap)), fact("Goroutines", count(p.goroutines)), fact("Collections", count(p.gcs), h("span", { class: "dim" }, `stopped it for ${duration(1000 * (p.gc_pause ?? 0))}`)), fact("Processor", duration(1000 * (p.cpu ?? 0))));
}

export function agent(v, state, name, draw) {
  const crumbs = h("p", { class: "crumbs" }, h("a", { href: "#/agents" }, "Agents"), " / ", h("span", {}, name));
  if (name === MASTER) return [crumbs, h("h2", {}, "ApplicationMaster"), h("p", { class: "dim" }, h("a", { href: "#/logs/appmaster" }, "Its log")), own(v), panel(MASTER, v, state, draw)];
  const a = v.agents.find((x) => x.id === name), c = (v.held ?? []).find((x) => x.agent === name);
  if (!a && !c) return [crumbs, h("p", {}, `There is no agent ${name}.`)];
  const tasks = (a?.slots ?? []).flatMap((s) => (s.tasks ?? []).map((t) => ({ slot: s.index, task: t })));
  const to = (t) => v.vertices.find((x) => t.startsWith(x.name + " "));
  return [crumbs,
    h("h2", {}, name, " ", pill(a?.state ?? c.state)),
    h("p", { class: "dim" }, [(a ?? c).host, c && c.id !== name && c.id, a?.pid && `process ${a.pid}`, a?.exchange].filter(Boolean).join(", "), " ", h("a", { href: a?.log_url ?? `#/logs/${encodeURIComponent(name)}` }, "Its log")),
    a?.why && h("p", { class: "bad" }, a.why), c?.exit && h("p", { class: c.exit.failed ? "bad" : "" }, c.exit.reason), c?.exit?.fix && h("p", {}, h("b", {}, "What helps: "), c.exit.fix),
    a && facts(
      fact("Memory", bytes(a.rss), spark(course(`a${a.id}.rss`), "resident memory", { width: 110 })), fact("Heap", bytes(a.heap), a.memory_limit && h("span", { class: "dim" }, `limit ${bytes(a.memory_limit)}`)),
      fact("Goroutines", count(a.goroutines)), fact("Collections", count(a.gcs), h("span", { class: "dim" }, `stopped it for ${duration(1000 * a.gc_pause)}`)), fact("Processor", duration(1000 * a.cpu)),
      fact("Segments in use", `${count(a.segments_used)} of ${count(a.segments)}`, bar(a.segments_used / (a.segments || 1), "segments in use")),
      fact("Exchange in", bytes(now(`a${a.id}.in`)) + "/s", spark(course(`a${a.id}.in`), "bytes in a second", { width: 110 })), fact("Exchange out", bytes(now(`a${a.id}.out`)) + "/s", spark(course(`a${a.id}.out`), "bytes out a second", { width: 110 }))),
    a && h("section", { class: "panel" }, table("Tasks", [
      { head: "Task", cell: (t) => (to(t.task) ? h("a", { href: `#/vertex/${to(t.task).id}` }, t.task) : t.task) }, { head: "Slot", cell: (t) => String(t.slot) },
    ], tasks, { title: true, key: (t) => t.task, empty: "it runs none" })),
    a && a.state !== "lost" && panel(name, v, state, draw)];
}
