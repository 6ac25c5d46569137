// Small pieces that several pages use.

import { h, s } from "./dom.js";
import { count, percent } from "./format.js";

/** spark draws the course of a series. */
export function spark(values, label, opts = {}) {
  const w = opts.width ?? 120, hgt = opts.height ?? 24;
  const top = Math.max(...values, opts.max ?? 0, 1e-9);
  const step = w / 89;
  const pts = values.map((v, i) => `${(w - (values.length - 1 - i) * step).toFixed(1)},${(hgt - 1 - (v / top) * (hgt - 3)).toFixed(1)}`);
  return s("svg", { class: "spark", viewBox: `0 0 ${w} ${hgt}`, width: w, height: hgt, role: "img", "aria-label": label },
    pts.length > 1 && s("polygon", { class: "area", points: `${pts[0].split(",")[0]},${hgt} ${pts.join(" ")} ${w},${hgt}` }),
    pts.length > 1 && s("polyline", { points: pts.join(" ") }));
}

/** load shows how a task's time is shared out: busy, blocked by what comes after it, idle. */
export function load(busy, blocked) {
  const title = `busy ${percent(busy)}, blocked ${percent(blocked)}, idle ${percent(Math.max(0, 1 - busy - blocked))}`;
  return h("span", { class: "load", role: "img", "aria-label": title, title },
    h("i", { class: "busy", style: `width:${(busy * 100).toFixed(1)}%` }),
    h("i", { class: "blocked", style: `width:${(blocked * 100).toFixed(1)}%` }));
}

/** bar shows a share of a whole. */
export function bar(share, label, cls = "") {
  return h("span", { class: `bar ${cls}`, role: "img", "aria-label": label, title: label },
    h("i", { style: `width:${(100 * Math.min(1, Math.max(0, share || 0))).toFixed(1)}%` }));
}

export const pill = (state) => h("span", { class: `pill ${state}` }, state);

const FIRST = 250;
const shown = new Map(); // how many rows of a table the reader wants, where that is not the FIRST

/** more has a table show twice as many rows. */
export const more = (id) => shown.set(id, 2 * (shown.get(id) ?? FIRST));

/** table makes a table; a column is {head, num, cell(row), sort(row)}. Of many rows, the first in the reader's order are drawn: thousands every second would take the browser's breath. */
export function table(caption, columns, rows, opts = {}) {
  const order = opts.sort && columns.find((c) => c.id === opts.sort.id);
  if (order?.sort) {
    rows = [...rows].sort((a, b) => {
      const x = order.sort(a), y = order.sort(b);
      return (x < y ? -1 : x > y ? 1 : 0) * (opts.sort.down ? -1 : 1);
    });
  }
  const all = rows.length, limit = shown.get(opts.id) ?? FIRST;
  if (opts.id && all > limit) rows = rows.slice(0, limit);
  const head = columns.map((c) => {
    const on = order === c;
    const label = c.sort ? h("button", { class: "sort", "data-sort": c.id, "data-table": opts.id }, c.head, on ? (opts.sort.down ? " ↓" : " ↑") : "") : c.head;
    return h("th", { scope: "col", class: c.num ? "n" : undefined, "aria-sort": on ? (opts.sort.down ? "descending" : "ascending") : undefined }, label);
  });
  return [h("div", { class: "scroll" }, h("table", {},
    h("caption", { class: opts.title ? "title" : "sr" }, caption),
    h("thead", {}, h("tr", {}, head)),
    h("tbody", {}, rows.length ? rows.map((r) => h("tr", { "data-key": opts.key?.(r) },
      columns.map((c, i) => h(i === 0 ? "th" : "td", { class: c.num ? "n" : undefined, scope: i === 0 ? "row" : undefined }, c.cell(r)))))
      : h("tr", {}, h("td", { colspan: columns.length, class: "dim" }, opts.empty ?? "none"))))),
  rows.length < all && h("p", { class: "dim" }, `${count(rows.length)} of ${count(all)}${order ? ", in this order" : ""} `, h("button", { "data-do": "more", "data-table": opts.id }, "Show more"))];
}

/** fact is a figure with its name. */
export function fact(name, value, more) {
  return h("div", { class: "fact" }, h("dt", {}, name), h("dd", {}, value, more && h("small", {}, more)));
}

export const facts = (...list) => h("dl", { class: "facts" }, list);
