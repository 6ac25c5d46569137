// Building and updating the page. Text goes in by textContent alone, so that nothing from a job is ever markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(el, props, children) {
  for (const [key, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "style") el.style.cssText = value; // not by setAttribute, which the page's policy refuses
    else el.setAttribute(key, value === true ? "" : String(value));
  }
  el.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return el;
}

/** h makes an HTML element; children are nodes, texts, or lists of them. */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** s makes an SVG element. */
export function s(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

const keyOf = (node) => (node.nodeType === 1 ? node.getAttribute("data-key") : null);

function sameKind(a, b) {
  return a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);
}

function attributes(old, now) {
  for (const { name, value } of now.attributes) {
    if (old.getAttribute(name) === value) continue;
    if (name === "style") old.style.cssText = value;
    else old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    // A details element that the reader opened stays open, a scroll position stays.
    if (!now.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
  }
}

/** morph makes old look like now with as few changes as it can: focus, selection and scrolling survive. */
export function morph(old, now) {
  if (old.nodeType === 3) {
    if (old.data !== now.data) old.data = now.data;
    return;
  }
  attributes(old, now);
  if (old.nodeName === "INPUT" || old.nodeName === "SELECT") return;
  const keyed = new Map();
  for (const child of old.childNodes) {
    const key = keyOf(child);
    if (key !== null) keyed.set(key, child);
  }
  let at = old.firstChild;
  for (const child of [...now.childNodes]) {
    const key = keyOf(child);
    const twin = key !== null ? keyed.get(key) : at;
    if (twin && sameKind(twin, child)) {
      if (twin !== at) old.insertBefore(twin, at);
      else at = at.nextSibling;
      morph(twin, child);
    } else {
      old.insertBefore(child, at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

/** show puts nodes into an element that is in the page. */
export function show(el, ...nodes) {
  const now = el.cloneNode(false);
  now.append(...nodes.flat(Infinity).filter(Boolean));
  morph(el, now);
}
