// Numbers and texts as people see them, in the forms of writing/numbers.py and of errors.printable; a test holds them equal.

/** Round to decimals, halves to even, as Python does: `toFixed` rounds them up. */
function fixed(size, digits) {
  if ((size * 2 ** (digits + 1)) % 2 !== 1) return size.toFixed(digits);
  const below = Math.floor(size * 10 ** digits);
  return ((below + (below % 2)) / 10 ** digits).toFixed(digits);
}

/** Return a reward, a score or a correlation: `0.526`; only 0 is `0`, and only 1 is `1`. */
export function number(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return Number(value.toPrecision(4)).toExponential().replace(/e\+(\d)$/, "e+0$1");
  if (Number.isInteger(value)) return whole(value + 0); // + 0: no -0
  const sign = value < 0 ? "-" : "";
  const text = fixed(size, 3);
  if (Number(text) !== 0 && Number(text) !== 1) return sign + grouped(text);
  const isBelow = size > 0.5 && size < 1;
  const bound = size <= 0.5 ? "0.001" : isBelow ? "0.999" : "1.001";
  return `${isBelow === (sign === "") ? ">" : "<"}${sign}${bound}`;
}

const grouped = (text) => text.replace(/\B(?=(\d{3})+(?!\d))/g, ",");

/** Return the number of a row, all of it. */
export const whole = (value) => grouped(String(value));

/** Return a number of things: `5,276`, `12.3 M`. */
export function count(value) {
  if (value === null || value === undefined) return "–";
  return value >= 1e7 ? `${grouped(fixed(value / 1e6, 1))} M` : whole(value);
}

export const counted = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

const UNSEEN = /(?! )[\p{C}\p{Z}]/gu;

function escaped(character) {
  const code = character.codePointAt(0);
  const short = { 9: "\\t", 10: "\\n", 13: "\\r" }[code];
  const [mark, width] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
  return short ?? `\\${mark}${code.toString(16).padStart(width, "0")}`;
}

/** Show control, bidirectional and zero-width characters as escapes. */
export const printable = (text, lines = false) =>
  text.replace(UNSEEN, (character) => (lines && character === "\n" ? character : escaped(character)));

export function cut(text, most) {
  const points = [...text];
  return points.length <= most ? text : `${points.slice(0, most).join("")}… ${count(points.length - most)} more`;
}

/** Leave out the middle of a text of more code points than these. */
export const elided = (points, most) =>
  (points.length <= most ? points : [...points.slice(0, most / 2), "…", ...points.slice(-most / 2)]).join("");

/** Split texts into what they share and what differs: one in the other, else the same beginnings and ends. */
export function difference(read, expected) {
  const [a, b] = [[...read], [...expected]];
  const inside = (all, part) => {
    const at = part.length ? all.findIndex((_, place) => part.every((point, n) => all[place + n] === point)) : -1;
    return at < 0 ? null : [at, all.length - at - part.length];
  };
  let [start, end] = inside(a, b) ?? [0, 0];
  if (inside(a, b)) return { a, b, keptA: [start, a.length - end, true], keptB: null };
  if (inside(b, a)) return { a, b, keptA: null, keptB: [inside(b, a)[0], b.length - inside(b, a)[1], true] };
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  return { a, b, keptA: [start, a.length - end, false], keptB: [start, b.length - end, false] };
}

/** Cut a text where spans begin and end: its parts, in order, each with the kinds that cover it. Spans may overlap. */
export function parts(text, spans) {
  const points = [...text];
  const places = new Set([0, points.length, ...spans.flatMap(({ start, end }) => [start, end])]);
  const cuts = [...places].filter((place) => place >= 0 && place <= points.length).sort((a, b) => a - b);
  return cuts.slice(0, -1).map((start, at) => {
    const covering = spans.filter((span) => span.start <= start && span.end >= cuts[at + 1]);
    return { text: points.slice(start, cuts[at + 1]).join(""), kinds: new Set(covering.map((span) => span.kind)) };
  });
}
