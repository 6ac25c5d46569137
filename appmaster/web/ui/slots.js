// Slots: what runs where, by host and agent, and how even it is.

import { h } from "./dom.js";
import { fact, facts } from "./parts.js";

const HUES = 8;

function spread(list) {
  return list.length ? `${Math.min(...list)} to ${Math.max(...list)}` : "–";
}

export function slots(v) {
  const hue = new Map(v.vertices.map((x, i) => [x.name, i % HUES]));
  const there = v.agents.filter((a) => a.state !== "lost");
  const hosts = new Map();
  for (const a of there) hosts.set(a.host || "not placed yet", [...(hosts.get(a.host || "not placed yet") ?? []), a]);
  const used = (a) => (a.slots ?? []).filter((x) => x.job).length;
  const tasks = (a) => (a.slots ?? []).reduce((n, x) => n + (x.tasks?.length ?? 0), 0);
  const alive = there.filter((a) => a.state === "alive");
  return [
    facts(
      fact("Needed", String(v.slots.needed)), fact("There", String(v.slots.total)), fact("Free", String(v.slots.free)),
      fact("Used slots an agent", spread(alive.map(used))), fact("Tasks an agent", spread(alive.map(tasks))), fact("Hosts", String(hosts.size))),
    h("p", { class: "legend" }, v.vertices.map((x) => h("span", { class: "key" }, h("i", { class: `hue${hue.get(x.name)}` }), x.name))),
    [...hosts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, list]) => h("section", { class: "panel host", "data-key": name },
      h("h2", {}, name, h("small", { class: "dim" }, ` ${list.length} ${list.length === 1 ? "agent" : "agents"}`)),
      h("div", { class: "agents" }, list.map((a) => h("div", { class: `agent ${a.state}`, "data-key": a.id },
        h("h3", {}, a.id, h("small", { class: "dim" }, ` ${used(a)} of ${(a.slots ?? []).length}`, a.state !== "alive" ? `, ${a.state}` : "")),
        h("ol", { class: "slots" }, (a.slots ?? []).map((x) => h("li", { class: x.job ? "used" : "free", "aria-label": `slot ${x.index}: ${x.tasks?.join(", ") || (x.job ? "held" : "free")}` },
          x.tasks?.length ? x.tasks.map((t) => task(t, hue)) : h("span", { class: "dim" }, x.job ? "held" : "free"))))))))),
    !there.length && h("p", { class: "dim" }, "There is no agent yet."),
  ];
}

/** task draws "vertex 3/8", whose number stays to be seen however long the name is. */
function task(text, hue) {
  const at = text.lastIndexOf(" ");
  const name = text.slice(0, at);
  return h("span", { class: `task hue${hue.get(name) ?? 0}`, title: text }, h("span", {}, name), text.slice(at + 1));
}
