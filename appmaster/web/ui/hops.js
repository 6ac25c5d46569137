// How long followed records took through each edge.

/** hopsOf joins the figures of an edge over the subtasks that read it: means by count, the worst of the percentiles. */
export function hopsOf(v, edge) {
  const by = new Map();
  for (const t of v.vertices.find((x) => x.id === v.edges[edge].to)?.subtasks ?? []) {
    for (const hop of t.hops ?? []) {
      if (hop.edge !== edge) continue;
      const sum = by.get(hop.phase) ?? { count: 0, total: 0, p50: 0, p99: 0 };
      by.set(hop.phase, { count: sum.count + hop.count, total: sum.total + hop.count * hop.mean, p50: Math.max(sum.p50, hop.p50), p99: Math.max(sum.p99, hop.p99) });
    }
  }
  return by;
}

/** mean is the average time of a phase, in seconds. */
export const mean = (x) => (x?.count ? x.total / x.count : 0);

/** whole is the average time of all phases. */
export const whole = (by) => [...by.values()].reduce((n, x) => n + mean(x), 0);

/** followed is how many records were followed through an edge. */
export const followed = (by) => Math.max(0, ...[...by.values()].map((x) => x.count));

/** crossed is how many of them went from one agent to another: only they have been on the wire. */
export const crossed = (by) => by.get("wire")?.count ?? 0;

/** wait is how long records wait for credit at an edge, in seconds, if that is most of their way and to be felt; else 0. */
export function wait(by) {
  const credit = mean(by.get("credit"));
  return credit > 0.001 && 2 * credit > whole(by) ? credit : 0;
}
