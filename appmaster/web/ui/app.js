// Asks for the snapshot once a second and draws the page that the address names.

import { h, show } from "./dom.js";
import { clock, duration } from "./format.js";
import { remember } from "./history.js";
import { more, pill } from "./parts.js";
import { overview } from "./overview.js";
import { vertex } from "./vertex.js";
import { slots } from "./slots.js";
import { sources } from "./sources.js";
import { agents } from "./agents.js";
import { agent, profile } from "./agent.js";
import { containers } from "./containers.js";
import { latency } from "./latency.js";
import { configuration } from "./configuration.js";
import { logs } from "./logs.js";

const PAGES = [
  ["overview", "Overview", overview], ["slots", "Slots", slots], ["sources", "Sources", sources],
  ["agents", "Agents", agents], ["containers", "Containers", containers], ["latency", "Latency", latency], ["logs", "Logs", logs], ["configuration", "Configuration", configuration],
];
// Pages of one thing, and the page that leads to them.
const PARTS = { vertex: ["overview", vertex], agent: ["agents", agent] };
const PATIENCE = 15000; // with an ApplicationMaster that takes a question and does not answer, in milliseconds
const OVER = new Set(["finished", "failed", "canceled"]);
const el = (id) => document.getElementById(id);

const state = { snapshot: null, session: null, sort: {}, failed: 0, open: {} };

function route() {
  const [page, arg] = location.hash.replace(/^#\/?/, "").split("/");
  return { page: page || "overview", arg: arg && decoded(arg) };
}

/** decoded undoes encodeURIComponent; what that never made, such as an address that was cut short, stands for itself. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function header(v) {
  return [
    h("div", { class: "title" },
      h("img", { src: "ui/mark.svg", alt: "Heddle", width: 30, height: 30 }),
      h("div", {}, h("h1", {}, v.job), h("p", { class: "dim" }, v.app, v.attempt > 1 ? `, attempt ${v.attempt}` : "", `, up ${duration(Date.parse(v.time) - Date.parse(v.started))}`))),
    h("div", { class: "do" },
      pill(v.state), h("span", { class: "dim since" }, `for ${duration(Date.parse(v.time) - Date.parse(v.since))}`),
      h("button", { "data-do": "theme", title: "Light or dark (t)", "aria-label": "Light or dark" }, "◐"),
      !OVER.has(v.state) && state.session?.may?.includes("modify") && h("button", { "data-do": "cancel", class: "danger" }, "Cancel job")),
  ];
}

function navigation(v, page) {
  return PAGES.filter(([id]) => id !== "sources" || v.sources?.length).map(([id, name], i) =>
    h("a", { href: `#/${id}`, "aria-current": id === (PARTS[page]?.[0] ?? page) ? "page" : undefined, title: `${name} (${i + 1})` }, name));
}

function draw() {
  const v = state.snapshot;
  if (!v) return;
  const { page, arg } = route();
  const found = PARTS[page]?.[1] ?? PAGES.find(([id]) => id === page)?.[2] ?? overview;
  document.title = `${v.job} – ${v.state} – Heddle`;
  show(el("top"), header(v));
  show(el("nav"), navigation(v, page));
  show(el("main"), found(v, state, arg, draw));
}

/** recent makes busy and blocked those of the last seconds, where tasks report them: people look at what is. */
function recent(v) {
  for (const x of v.vertices) {
    const known = (x.subtasks ?? []).filter((t) => t.recent && t.recent.busy + t.recent.idle + t.recent.blocked > 0);
    for (const t of known) [t.busy, t.blocked] = [t.recent.busy, t.recent.blocked];
    if (!known.length) continue;
    for (const part of ["busy", "blocked"]) x[part] = known.reduce((n, t) => n + t[part], 0) / known.length;
  }
}

function notice(text) {
  document.body.classList.toggle("stale", state.failed > 0);
  el("notice").hidden = !text;
  if (el("notice").textContent !== text) el("notice").textContent = text;
}

async function poll() {
  let wait = 1000;
  try {
    state.session ??= await ask("api/session");
    const v = await ask("api/job");
    for (const list of ["vertices", "edges", "agents", "sources"]) v[list] ??= [];
    recent(v);
    state.snapshot = v;
    state.failed = 0;
    notice("");
    remember(v);
    draw();
    if (OVER.has(v.state)) wait = 5000;
  } catch (e) {
    state.failed++;
    if (state.failed > 2) state.session = null; // another ApplicationMaster may answer next
    const why = e instanceof TypeError || e instanceof DOMException ? "" : ` ${e.message}`; // nobody there: each browser says that in its own words
    notice(state.snapshot ? `No answer since ${clock(state.snapshot.time)}: this is what was last known.${why}` : `No answer from the ApplicationMaster.${why}`);
    wait = Math.min(10000, 1000 * state.failed);
  }
  setTimeout(poll, document.hidden ? Math.max(wait, 5000) : wait);
}

/** ask fetches JSON; its errors are fit to be shown. */
export async function ask(path) {
  const r = await fetch(path, { headers: { Accept: "application/json" }, cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
  const body = await r.text();
  let data;
  try {
    data = JSON.parse(body);
  } catch {
    throw new Error(r.ok ? "The answer is not the ApplicationMaster's: that may have ended, or a proxy may ask to log in. Load the page again." : `HTTP ${r.status}`);
  }
  if (!r.ok) throw new Error(data.error ?? `HTTP ${r.status}`);
  return data;
}

/** act asks for an action, and returns its answer. */
export async function act(path) {
  const r = await fetch(path, { method: "PUT", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token: state.session.token }) });
  const answer = await r.json().catch(() => ({}));
  if (!r.ok) throw new Error(answer.error ?? `HTTP ${r.status}`);
  return answer;
}

async function cancel() {
  el("ask").returnValue = ""; // what Esc leaves
  el("ask").showModal();
  el("ask").addEventListener("close", async () => {
    if (el("ask").returnValue !== "yes") return;
    await act("api/job/cancel").catch((e) => notice(`The job was not cancelled: ${e.message}`));
  }, { once: true });
}

function theme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try {
    localStorage.setItem("heddle-theme", root.dataset.theme);
  } catch { /* not kept, then */ }
}

document.addEventListener("click", (e) => {
  if (e.target.closest(".skip")) {
    e.preventDefault(); // its address would be taken for a page's
    el("main").focus();
  }
  const b = e.target.closest("button");
  if (!b) return;
  if (b.dataset.do === "cancel") cancel();
  else if (b.dataset.do === "theme") theme();
  else if (b.dataset.do === "profile") profile(b, draw);
  else if (b.dataset.do === "more") {
    more(b.dataset.table);
    draw();
  }
  else if (b.dataset.sort) {
    const id = b.dataset.table, old = state.sort[id];
    state.sort[id] = { id: b.dataset.sort, down: old?.id === b.dataset.sort ? !old.down : true };
    draw();
  }
});
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.altKey || e.metaKey || el("ask").open || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) return;
  if (e.key === "t") theme();
  const link = el("nav").children[Number(e.key) - 1];
  if (link) link.click();
});
document.addEventListener("input", (e) => {
  if (e.target.dataset.field) {
    state.open[e.target.dataset.field] = e.target.value;
    draw();
  }
});
/** centre scrolls the navigation, where it is wider than the window, to the page that is shown. */
function centre() {
  const nav = el("nav"), a = nav.querySelector("[aria-current]");
  if (a) nav.scrollLeft = a.offsetLeft - nav.offsetLeft - (nav.clientWidth - a.offsetWidth) / 2;
}

addEventListener("resize", centre);
addEventListener("hashchange", () => {
  draw();
  centre();
  scrollTo(0, 0);
  el("main").focus({ preventScroll: true }); // a reader of the screen begins with the new page
});
poll();
