// Numbers, sizes and times as people read them.

const THIN = "\u202f";

export function count(n) {
  if (n === undefined || n === null || n < 0) return "–";
  return String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, THIN);
}

function scaled(v, base, units) {
  let i = 0;
  while (Math.abs(v) >= base && i < units.length - 1) {
    v /= base;
    i++;
  }
  const digits = i === 0 || v >= 100 ? 0 : 1;
  return v.toFixed(digits) + (units[i] && THIN + units[i]);
}

export const rate = (v) => scaled(v ?? 0, 1000, ["", "k", "M", "G"]) + "/s";
export const short = (v) => (v === undefined || v < 0 ? "–" : scaled(v, 1000, ["", "k", "M", "G", "T"]));
export const bytes = (v) => scaled(v ?? 0, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
export const percent = (v) => Math.round(100 * (v ?? 0)) + THIN + "%";

export function duration(ms) {
  if (ms < 0) ms = 0;
  if (ms < 1000) return Math.round(ms) + THIN + "ms";
  const sec = Math.floor(ms / 1000);
  if (sec < 60) return sec + THIN + "s";
  const min = Math.floor(sec / 60);
  if (min < 60) return `${min}${THIN}min ${sec % 60}${THIN}s`;
  const hours = Math.floor(min / 60);
  if (hours < 48) return `${hours}${THIN}h ${min % 60}${THIN}min`;
  return `${Math.floor(hours / 24)}${THIN}d ${hours % 24}${THIN}h`;
}

/** span is a time from nanoseconds, with three digits. */
export function span(ns) {
  if (!ns) return "0";
  for (const [unit, of] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) {
    if (ns >= of) return (ns / of).toPrecision(3) + THIN + unit;
  }
  return Math.round(ns) + THIN + "ns";
}

export const clock = (t) => new Date(t).toLocaleTimeString([], { hour12: false });

const END = 4102444800000 * 4; // watermarks this far ahead stand for the end of the input

/** lag says how far a watermark is behind a moment. */
export function lag(watermark, now) {
  if (watermark === undefined || watermark === null) return "–";
  if (watermark > END) return "end";
  return duration(now - watermark);
}
