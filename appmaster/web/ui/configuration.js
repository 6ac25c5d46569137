// The configuration in force, and where each value came from.

import { h } from "./dom.js";
import { table } from "./parts.js";
import { ask } from "./app.js";

let options = null, error = null, asked = -Infinity;

function fetchOnce(draw) {
  if (options || Date.now() - asked < 5000) return;
  asked = Date.now();
  ask("api/configuration").then((o) => { options = o; error = null; }, (e) => (error = e.message)).finally(draw);
}

/** option is the value of an option, as soon as it is known. */
export function option(name, draw) {
  fetchOnce(draw);
  return options?.find((o) => o.name === name)?.value;
}

export function configuration(v, state, arg, draw) {
  fetchOnce(draw);
  if (!options && !error) return h("p", { class: "dim" }, "Asking…");
  if (error) return h("p", { class: "bad" }, error);
  const find = (state.open.option ?? "").toLowerCase();
  const rows = options.filter((o) => !find || o.name.includes(find) || o.value.toLowerCase().includes(find));
  return h("section", { class: "panel" },
    h("label", { class: "find" }, "Find ", h("input", { type: "search", "data-field": "option", placeholder: "name or value" })),
    table("Configuration", [
      { id: "n", head: "Option", sort: (o) => o.name, cell: (o) => h("code", {}, o.name) },
      { id: "v", head: "Value", cell: (o) => h("code", { class: o.origin === "default" ? "dim" : "" }, o.value === "" ? "(empty)" : o.value) },
      { id: "o", head: "From", sort: (o) => o.origin, cell: (o) => o.origin },
      { id: "d", head: "What it is", cell: (o) => h("small", { class: "dim" }, o.doc) },
    ], rows, { id: "options", title: true, sort: state.sort.options, key: (o) => o.name, empty: "no option matches" }));
}
