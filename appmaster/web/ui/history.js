// What the page remembers between polls: rates and their course, made from growing counters.

const KEEP = 90;
const series = new Map();

/** note adds a value to a series. */
export function note(key, value) {
  let list = series.get(key);
  if (!list) series.set(key, (list = []));
  list.push(value);
  if (list.length > KEEP) list.shift();
}

const counters = new Map();

/** grow turns a counter into a rate a second and adds it to the series of the same key. */
export function grow(key, value, at) {
  const last = counters.get(key);
  if (last && at <= last.at) return;
  counters.set(key, { value, at });
  if (!last || value < last.value) return; // the first sample, or a restart: no rate yet
  note(key, ((value - last.value) * 1000) / (at - last.at));
}

export const course = (key) => series.get(key) ?? [];

/** now is the mean of the last few values of a series. */
export function now(key) {
  const last = course(key).slice(-5);
  return last.length ? last.reduce((a, b) => a + b, 0) / last.length : 0;
}

/** remember takes what is shown as a course from a snapshot. */
export function remember(v) {
  const at = Date.parse(v.time);
  let read = 0, written = 0;
  const fed = new Set(v.edges.map((e) => e.to)), feeds = new Set(v.edges.map((e) => e.from));
  for (const x of v.vertices) {
    note(`v${x.id}.in`, x.in_rate);
    note(`v${x.id}.out`, x.out_rate);
    note(`v${x.id}.blocked`, x.blocked);
    if (!fed.has(x.id)) read += x.out_rate || x.in_rate;
    if (!feeds.has(x.id)) written += x.in_rate;
    for (const t of x.subtasks ?? []) {
      grow(`t${x.id}.${t.index}.in`, t.records_in, at);
      grow(`t${x.id}.${t.index}.out`, t.records_out, at);
    }
  }
  note("read", read);
  note("written", written);
  for (const a of v.agents) {
    grow(`a${a.id}.in`, a.exchange_in, at);
    grow(`a${a.id}.out`, a.exchange_out, at);
    note(`a${a.id}.rss`, a.rss);
  }
  for (const src of v.sources ?? []) {
    for (const p of src.splits ?? []) if (p.position >= 0) grow(`p${src.vertex}.${p.id}`, p.position, at);
  }
}
