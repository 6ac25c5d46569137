// The end of a container's log.

import { h } from "./dom.js";
import { ask } from "./app.js";

const shown = { name: null, text: "", error: null, at: 0, busy: false };

function refresh(name, draw) {
  if (shown.busy || (shown.name === name && Date.now() - shown.at < 2000)) return;
  shown.busy = true;
  ask(`api/logs/${encodeURIComponent(name)}`).then(
    (l) => Object.assign(shown, { text: l.lines.join("\n"), error: null }),
    (e) => Object.assign(shown, { error: e.message }),
  ).finally(() => {
    Object.assign(shown, { name, at: Date.now(), busy: false });
    draw();
  });
}

export function logs(v, state, arg, draw) {
  const names = ["appmaster", ...v.agents.map((a) => a.id)];
  const name = names.includes(arg) ? arg : "appmaster";
  const agent = v.agents.find((a) => a.id === name);
  if (!agent?.log_url) refresh(name, draw);
  return [
    h("p", { class: "tabs", role: "group", "aria-label": "Whose log" }, names.map((n) => h("a", { href: `#/logs/${encodeURIComponent(n)}`, "aria-current": n === name ? "page" : undefined }, n))),
    h("section", { class: "panel" }, h("h2", {}, `Log of ${name}`),
      agent?.log_url ? h("p", {}, h("a", { href: agent.log_url, rel: "noreferrer" }, "The NodeManager has it"))
        : shown.name !== name ? h("p", { class: "dim" }, "Asking…")
          : shown.error ? h("p", { class: "bad" }, shown.error)
            : h("pre", { class: "log", tabindex: 0 }, shown.text || "nothing yet")),
  ];
}
