// The viewer: rows and their evidence, an address for each state, keys. All else on the page is there without it.
// Whatever comes from data becomes a text node; positions in texts are code points.

const page = JSON.parse(document.getElementById("data").textContent);
const { about } = page;
const isServer = page.home === "server";
const PAGE = 50;

const label = (value) =>
  value === null || value === undefined ? "–" : cut(typeof value === "object" ? JSON.stringify(value) : String(value), 80);

/** Return an element; of its children, texts become text nodes in which all can be seen. */
function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  const lines = tag === "pre" || tag === "mark" || tag === "dd";
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : printable(String(child), lines));
  }
  return element;
}

const spoken = (text) => h("span", { class: "spoken" }, text);

// ---- addresses ----

const FILTERS = ["failed", "passed", "where", "text", "task", "model", "step", "state", "bin", "reason", "rows"];
const LISTED = [...FILTERS, "sort", "offset", "result"];

const current = () => new URLSearchParams(location.hash.slice(1));

/** Return the address of a state with changes: null takes a name away; filters change the page of the list, too. */
function address(state, changes) {
  const next = new URLSearchParams(state);
  for (const [name, value] of Object.entries(changes)) {
    next.delete(name);
    for (const item of [value].flat()) if (item !== null) next.append(name, item);
  }
  next.delete("view");
  const text = next.toString().replace(/\+/g, "%20");
  return text ? `#${text}` : "#view=rows";
}

const resultOf = (state) => state.get("result") ?? String(page.result);
const offsetOf = (state) => Math.max(0, Number(state.get("offset")) || 0);
const go = (changes) => { location.hash = address(current(), changes); };
const filtered = (state, changes) => address(state, { offset: null, row: null, ...changes });

// ---- rows, from the file or from the server ----

const keyed = (row, names) => names.filter((name) => name in row.key).map((name) => String(row.key[name]));
const keyWords = (name, value) => (name === "step" ? `step ${label(value)}` : label(value));
const differing = (row, from) => ["model", "step"].filter((name) => name in row.key && row.key[name] !== from.key[name]).map((name) => keyWords(name, row.key[name]));
const isFailure = (score) => score !== null && score !== 1;
const fails = (row, check) => (check ?? null) === null || isFailure(row.scores[placeOf.get(check)] ?? null);
const MOST_COLUMNS = 12; // of checks in the list
const MOST_OF_PART = 16; // code points there of what differs, and of what does not
let checks = []; // of the result whose rows are listed
let placeOf = new Map();

function choose(result) {
  checks = about.checks[result] ?? about.checks[0];
  placeOf = new Map(checks.map((check, at) => [check.name, at]));
}


function binOf(reward) {
  const [low, high] = about.range;
  return high > low ? Math.min(about.bins - 1, Math.max(0, Math.floor(((reward - low) / (high - low)) * about.bins))) : 0;
}

/** Return what a line of feedback has to be like to be of a template: each `…` stands for what differs. */
const ofTemplate = (template) =>
  new RegExp(template.split("…").map((part) => part.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")).join("[^]*?"), "u");

const textOf = (row) => {
  const card = page.cards[row.row];
  return [...Object.values(row.key), card?.text, card?.prompt, ...(card?.messages ?? []).map((message) => message.content)]
    .join("\n").toLowerCase();
};

const linesOf = (row, column) => {
  const card = page.cards[row.row];
  return [...card.checks.filter((check) => check[column]).map((check) => `${check.check}: ${check[column]}`), ...card[column]].join("\n");
};

/** Read a condition that findings write: that a column has some words, or that there is a reward. Others need a server. */
// rows of this page by the conditions of its findings, in SQL
const conditions = new Map(Object.entries(page.conditions ?? {}));

const TESTS = {
  failed: (row, name) => isFailure(row.scores[placeOf.get(name)] ?? null),
  passed: (row, name) => row.scores[placeOf.get(name)] === 1,
  where: (row, sql) => conditions.get(sql)?.includes(row.row) ?? false,
  text: (row, words) => textOf(row).includes(words.toLowerCase()),
  task: (row, value) => { const parts = keyed(row, about.tasks); return parts.join(", ") === value || parts.includes(value); },
  model: (row, value) => String(row.key.model ?? null) === value,
  step: (row, value) => String(row.key.step ?? null) === value,
  state: (row, value) => row.state === value,
  bin: (row, value) => row.reward !== null && binOf(row.reward) === Number(value),
  rows: (row, value) => value.split(",").includes(String(row.row)),
  reason: (row, template) => ofTemplate(template).test(`${linesOf(row, "feedback")}\n${linesOf(row, "error")}`),
};

const ANY = new Set(["model", "task", "step", "state", "bin", "rows", "reason"]); // of several values one is enough

function matches(row, state) {
  return FILTERS.every((name) => {
    const values = state.getAll(name);
    if (!values.length) return true;
    const test = (value) => TESTS[name](row, value);
    return ANY.has(name) ? values.some(test) : values.every(test);
  });
}

function sorted(rows, sort) {
  const name = sort.replace(/^-/, "");
  const value = (row) => (name === "row" || name === "reward" ? row[name] : row.key[name] ?? row.scores[placeOf.get(name)]) ?? null;
  const sign = sort.startsWith("-") ? -1 : 1;
  return rows.toSorted((a, b) => compare(value(a), value(b), sign) || a.row - b.row);
}

/** Order numbers and texts, what is missing last. */
function compare(a, b, sign) {
  if (a === null || b === null) return (a === null) - (b === null);
  return sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
}

const inFile = {
  async rows(state) {
    const matching = sorted(page.rows.rows.filter((row) => matches(row, state)), state.get("sort") || "row");
    const offset = offsetOf(state);
    return { matching: matching.length, rows: matching.slice(offset, offset + PAGE).map((row) => withReading(row, state)) };
  },
  async row(number) {
    return page.cards[number] ?? null;
  },
};

/** Take what is read and expected from the check that the address names, else from the first that fails. */
function withReading(row, state) {
  const verdicts = page.cards[row.row]?.checks ?? [];
  const check = verdicts.find((one) => one.check === chosenName(state)) ?? verdicts.find((one) => one.passes === false);
  return check?.evidence ? { ...row, ...check.evidence } : row;
}

async function asked(path, query) {
  const answer = await fetch(`api/${path}?${query}`, { cache: "no-store" });
  const body = await answer.json();
  if (!answer.ok) throw new Error([body.error, body.hint].filter(Boolean).join(" ").replaceAll("\n", " "));
  return body;
}

const fromServer = {
  rows(state) {
    const query = new URLSearchParams([...state].filter(([name]) => LISTED.includes(name) || name === "check"));
    query.set("result", resultOf(state));
    query.set("limit", PAGE);
    return asked("rows", query);
  },
  row: (number) => asked("row", new URLSearchParams({ result: resultOf(current()), row: number })),
};

const source = isServer ? fromServer : inFile;

// ---- what a check read, and where ----

/** Return a side of a difference as nodes: outside of, or within, its two places is what the other side has, too. */
function side(points, kept, most, tag, word) {
  if (!kept) return [elided(points, most)];
  const [start, end, isKept] = kept;
  return [points.slice(0, start), points.slice(start, end), points.slice(end)].map((part, at) => {
    const text = elided(part, most);
    if (!text || (at === 1) === isKept) return text;
    return h(tag, {}, spoken(`${word} `), text);
  });
}

function readAndExpected(read, expected, most = Infinity) {
  const golds = expected ?? [];
  const shown = read ?? null;
  if (shown === null || golds.includes(shown) || !golds.length) {
    const short = (text) => elided([...text], most);
    return { read: [shown === null ? h("i", { class: "unseen" }, "nothing") : short(shown)], expected: golds.slice(0, 1).map(short) };
  }
  const { a, b, keptA, keptB } = difference(shown, golds[0]);
  return { read: shown ? side(a, keptA, most, "del", "not expected:") : [h("i", { class: "unseen" }, "an empty text")], expected: side(b, keptB, most, "ins", "missing:") };
}

const KINDS = { read: "read by the check", matched: "matched", gold: "the gold", excess: "beyond the limit", offending: "not allowed" };

/** Return a text with marks. */
function marked(text, spans) {
  return parts(text, spans).map((part) => {
    const kinds = Object.keys(KINDS).filter((kind) => part.kinds.has(kind));
    const words = document.createTextNode(printable(part.text, true));
    return kinds.reduceRight((inside, kind) => h("mark", { class: kind, "data-kind": KINDS[kind] }, inside), words);
  });
}

// ---- the list ----

const work = h("div", { class: "work" });
const list = h("div", { class: "panel list", "aria-label": "List of rows", role: "region" });
const one = h("div", { class: "panel row", "aria-label": "Row", role: "region" });
const search = h("input", { type: "search", "aria-label": "Search texts and tasks", placeholder: "Search texts and tasks  /", autocomplete: "off", spellcheck: "false" });
const chips = h("span", { class: "tools" });
const filters = h("select", { "aria-label": "Add a filter" });
const table = h("table", {});
const status = h("p", { role: "status", class: "quiet" });
const pages = h("span", { class: "turns" });
const spokenRow = h("p", { class: "spoken", "aria-live": "polite" });
list.append(h("div", { class: "tools" }, search, filters), chips, h("div", { class: "scroll", tabindex: "-1" }, table), h("div", { class: "pages" }, status, pages));
work.append(list, one, spokenRow);

const NAMES = { failed: "fails", passed: "passes", where: "where", text: "text", task: "task =", model: "model =", step: "step =", state: "", bin: "reward", reason: "reason", rows: "rows" };

function wordsOf(name, value) {
  if (name !== "bin") return `${NAMES[name]} ${label(value)}`.trim();
  const [low, high] = about.range;
  const end = (at) => Number((low + ((high - low) * at) / about.bins).toPrecision(4));
  return `reward ${end(Number(value))} – ${end(Number(value) + 1)}`;
}

function drawFilters(state) {
  const active = FILTERS.flatMap((name) => state.getAll(name).map((value) => [name, value]));
  const taken = ([name, value]) => filtered(state, { [name]: state.getAll(name).filter((other) => other !== value) });
  const worst = about.states ? { state: "fail", sort: "reward" } : { sort: "reward" };
  const isWorst = Object.entries(worst).every(([name, value]) => state.get(name) === value);
  chips.replaceChildren(
    h("a", { class: isWorst ? "chip" : "chip off", href: filtered(state, isWorst ? { state: null, sort: null } : worst), "aria-current": isWorst && "true" }, "Worst"), " ",
    ...active.filter(([name]) => !(isWorst && name === "state")).flatMap((entry) => [h("a", { class: "chip", href: taken(entry), "data-chip": entry.join("=") }, wordsOf(...entry), " ", h("span", { "aria-hidden": "true" }, "×"), spoken("(remove)")), " "]),
    active.length > 1 ? h("a", { href: "#view=rows" }, "all rows") : "",
  );
  const option = (name, value, words) => h("option", { value: JSON.stringify([name, value]) }, words);
  const group = (words, options) => options.length > 0 && h("optgroup", { label: words }, options);
  filters.replaceChildren(h("option", { value: "" }, "Add a filter"), ...[
    group("Fails", checks.map((check) => option("failed", check.name, `fails ${label(check.name)}`))),
    group("Passes", checks.map((check) => option("passed", check.name, `passes ${label(check.name)}`))),
    group("Model", about.models.map((model) => option("model", String(model), label(model)))),
    group("Step", about.steps.map((step) => option("step", String(step), `step ${label(step)}`))),
    group("State", (about.states ? ["pass", "fail", "unscored"] : ["scored", "unscored"]).map((value) => option("state", value, value))),
    group("Where", isServer ? [option("where", null, "a condition in SQL …")] : [...conditions.keys()].map((sql) => option("where", sql, label(sql)))),
  ].filter(Boolean));
  const results = isServer && page.results.length > 1 ? page.results : [];
  chips.prepend(...results.flatMap((name, at) => {
    const isListed = resultOf(state) === String(at);
    return [h("a", { class: isListed ? "chip" : "chip off", href: filtered(state, { result: at === page.result ? null : at }), "aria-current": isListed && "true" }, label(name)), " "];
  }));
  if (document.activeElement !== search) search.value = state.get("text") ?? "";
}

function sortable(state, name, words, attributes = {}) {
  const sort = state.get("sort") || "row";
  const isUp = sort === name;
  const order = isUp ? "ascending" : sort === `-${name}` ? "descending" : null;
  return h("th", { scope: "col", "aria-sort": order, ...attributes }, h("a", { href: filtered(state, { sort: isUp ? `-${name}` : name }) }, words));
}

function verdict(score) {
  if (score === null || score === undefined) return [h("span", { class: "quiet" }, "–"), spoken("not scored")];
  if (score === 1) return [h("span", { class: "good", "aria-hidden": "true" }, "✓"), spoken("passes")];
  return [h("span", { class: "bad", "aria-hidden": "true" }, "✗"), spoken("fails"), score > 0 && score < 1 && h("span", { class: "quiet" }, ` ${number(score)}`)];
}

function drawTable(state, answer) {
  const isSame = (key) => state.getAll(key).length === 1; // a filter that a chip shows
  const keys = [...new Set(answer.rows.flatMap((row) => Object.keys(row.key)))].filter((key) => !isSame(key));
  const failing = checks.filter((_, at) => answer.rows.some((row) => isFailure(row.scores[at] ?? null)));
  const columns = checks.length <= MOST_COLUMNS ? checks : failing.slice(0, MOST_COLUMNS);
  const hasReading = answer.rows.some((row) => (row.read ?? null) !== null || [row.expected ?? []].flat().length);
  const head = h("tr", {},
    sortable(state, "row", "row", { class: "n" }),
    keys.map((key) => sortable(state, key, label(key).replace(/_id$/, ""))),
    sortable(state, "reward", "reward", { class: "n" }),
    columns.map((check) => sortable(state, check.name, label(check.name), { class: "check", title: printable(check.name) })),
    hasReading && h("th", { scope: "col" }, "read → expected"));
  const rows = answer.rows.map((row) => {
    const shown = readAndExpected(row.read, row.expected, MOST_OF_PART);
    return h("tr", { "data-row": row.row, click: (event) => { if (!event.target.closest("a")) event.currentTarget.querySelector("a").click(); } },
      h("th", { scope: "row", class: "n" }, h("a", { href: address(state, { row: row.row }) }, whole(row.row))),
      keys.map((key) => h("td", {}, label(row.key[key]))),
      h("td", { class: "n" }, number(row.reward)),
      columns.map((check) => h("td", { class: "check", "data-check": label(check.name) }, verdict(row.scores[placeOf.get(check.name)]))),
      hasReading && h("td", { class: "diff mono" }, (row.expected ?? []).length ? [...shown.read, h("span", { class: "quiet" }, " → "), ...shown.expected] : (row.read ?? null) !== null && shown.read));
  });
  table.replaceChildren(h("thead", {}, head), h("tbody", {}, rows));
}

function drawCounts(state, answer) {
  const offset = offsetOf(state);
  const shown = answer.rows.length ? `, ${whole(offset + 1)}–${whole(offset + answer.rows.length)} shown` : "";
  const scanned = (answer.scanned ?? null) !== null && answer.scanned < about.rows ? ` in the first ${count(answer.scanned)}` : "";
  const of = isServer && answer.matching < about.rows ? ` of ${count(about.rows)}` : "";
  const held = isServer ? about.rows : page.rows.rows.length;
  const sample = held < about.rows ? ` · this file has ${count(held)} of ${count(about.rows)} rows` : "";
  const where = !isServer && state.getAll("where").some((sql) => !conditions.has(sql)) ? "; a condition needs `assay view`" : "";
  status.textContent = `${counted(answer.matching, "row")}${of}${scanned}${shown}${where}${sample}`;
  pages.replaceChildren(
    offset > 0 ? h("a", { href: address(state, { offset: Math.max(0, offset - PAGE) || null, row: null }) }, "← earlier") : "",
    offset + PAGE < answer.matching ? h("a", { href: address(state, { offset: offset + PAGE, row: null }) }, "later →") : "");
}

// ---- one row ----

const chosenName = (state) => state.get("check") ?? state.get("failed") ?? state.get("passed");

function chosen(card, state) {
  return card.checks.find((check) => check.check === chosenName(state)) ?? card.checks.find((check) => check.passes === false) ?? card.checks[0] ?? null;
}

const toList = (state) => h("a", { class: "back", href: address(state, { row: null, check: null }) }, "← rows");

function drawRow(state, card, rowNumber) {
  if (!card) {
    const why = rowNumber === null ? "No row." : `Row ${whole(rowNumber)} is not in this file: open the result with \`assay view\`.`;
    return one.replaceChildren(h("p", {}, toList(state), h("span", { class: "quiet" }, why)));
  }
  const check = chosen(card, state);
  shownCheck = check?.check ?? null;
  const evidence = check?.evidence ?? null;
  const at = rowNumbers.indexOf(card.row);
  const place = at < 0 ? "" : `${at + 1 + offsetOf(state)} of ${count(matching)}`;
  spokenRow.textContent = printable([`Row ${whole(card.row)}`, place, ...card.checks.filter((entry) => entry.passes === false).map((entry) => `fails ${label(entry.check)}`)].filter(Boolean).join(", "));
  one.replaceChildren(...[
    h("h2", {}, toList(state), `Row ${whole(card.row)}`,
      h("span", {}, [...Object.entries(card.key).map(([name, value]) => keyWords(name, value)), `reward ${number(card.reward)}`, card.state].join(" · ")),
      h("span", { class: "turns" },
        h("button", { id: "earlier", "aria-label": "Previous row", title: "Previous row (←)", click: () => move(-1) }, "←"),
        h("button", { id: "later", "aria-label": "Next row", title: "Next row (→)", click: () => move(1) }, "→"),
        h("button", { id: "failing", title: "Next row that fails this check (n)", click: () => move(1, true) }, "next failing"))),
    h("p", { class: "quiet" }, place && `${place} · `, h("a", { href: address(new URLSearchParams(), { row: card.row, check: check?.check ?? null }) }, `#row=${card.row}${check ? `&check=${label(check.check)}` : ""}`)),
    ...asks(card),
    h("div", { class: "checks", role: "group", "aria-label": "Checks" }, card.checks.map((entry, n) =>
      h("button", { id: `check-${n}`, "aria-pressed": String(entry === check), title: entry.title ? printable(entry.title) : null, click: () => go({ row: current().get("row") ?? card.row, check: entry.check }) },
        verdict(entry.score), " ", label(entry.check), " ", h("span", { class: "quiet" }, checks[placeOf.get(entry.check)]?.worth ?? "")))),
    check && reading(check, evidence),
    ...texts(card, evidence),
    ...[...card.feedback, ...card.error].map((line) => h("p", { class: "quiet" }, line)),
    Object.keys(card.gold).length > 0 && h("dl", {}, Object.entries(card.gold).flatMap(([name, gold]) => [h("dt", {}, `gold: ${label(name)}`), h("dd", { class: "mono" }, cut(gold, 1000))])),
    card.same_task?.length > 0 && h("p", {}, h("span", { class: "quiet" }, "Same task: "), card.same_task.flatMap((other, n) => [n > 0 && " · ",
      h("a", { href: address(state, { row: other.row }) }, differing(other, card).join(", ") || `row ${whole(other.row)}`, ` ${number(other.reward)}`)])),
  ].filter(Boolean));
}

const LONG = 1500;

/** Return what was asked: the prompt, or messages by role; a long text is closed at first. */
function asks(card) {
  const prompt = (card.prompt ?? null) === null ? [] : [{ role: "prompt", content: card.prompt }];
  return (card.messages?.length ? card.messages : prompt).flatMap(({ role, content }) => {
    const size = (content ?? "").length;
    const text = h("pre", {}, content ?? "");
    return size <= LONG ? [h("h3", {}, label(role)), text] : [h("details", {}, h("summary", {}, `${label(role)}, ${counted(size, "character")}`), text)];
  });
}

function reading(check, evidence) {
  const kind = check.passes === null ? "open" : check.passes ? "passes" : "";
  const reason = check.feedback || check.error;
  const lines = [];
  if (evidence && (evidence.read !== null || evidence.expected.length)) {
    const shown = readAndExpected(evidence.read, evidence.expected);
    if (evidence.read !== null || !check.passes) lines.push(["read", [...shown.read, evidence.near && h("span", { class: "quiet" }, `  (${NEAR[evidence.near] ?? evidence.near})`)]]);
    if (evidence.expected.length) lines.push(["expected", [...shown.expected, evidence.expected.length > 1 && h("span", { class: "quiet" }, `  or ${count(evidence.expected.length - 1)} more`)]]);
  }
  if (reason) lines.push([check.error ? "error" : "reason", [reason]]);
  if (!lines.length) lines.push([label(check.check), [check.passes === null ? "not scored" : check.passes ? "passes" : `score ${number(check.score)}`]]);
  return h("dl", { class: `reading ${kind}` }, lines.flatMap(([name, parts]) => [h("dt", {}, name), h("dd", { class: "mono" }, parts)]));
}

const NEAR = {
  form: "the gold in another form", wrapped: "the gold in other wrapping", number: "the same number", rounded: "the same number, rounded",
  begins: "begins with the gold", ends: "ends with the gold", contains: "contains the gold", part: "a part of the gold",
};

/** Return a text with the marks of its spans, and under its name the kinds of marks, each a button that leads to the next of its kind. */
function markedText(name, text, spans) {
  const body = h("pre", {}, marked(text, spans));
  const legend = Object.entries(KINDS).filter(([kind]) => body.querySelector(`.${kind}`)).map(([kind, words]) => {
    let next = 0;
    const lead = () => { const all = body.querySelectorAll(`mark.${kind}`); all[next++ % all.length].scrollIntoView({ block: "center" }); };
    return h("button", { title: "Next of these marks", click: lead }, h("mark", { class: kind }, words));
  });
  return [h("div", { class: "legend" }, h("h3", {}, name), legend), body];
}

function texts(card, evidence) {
  const { source: name = "completion", spans = [] } = evidence ?? {};
  const other = name === "completion" ? null : card.sources[name] ?? null;
  const text = card.text === null ? [h("h3", {}, "completion"), h("p", { class: "quiet" }, "no text")] : markedText("completion", card.text, name === "completion" ? spans : []);
  return other === null ? text : [...markedText(label(name), other, spans), ...text];
}

// ---- drawing a state ----

let listed = null; // the query whose answer is shown
let rowNumbers = [];
let matching = 0;
let answerRows = [];
const LATER = 1500; // milliseconds after which a server that is still reading is asked again
let shown = null; // the row that is open
let shownCheck = null; // the check whose evidence it shows
let landing = { place: 0 }; // which row opens on a page that a key has turned to: the first, or -1, the last, of those that fail `check`
let turn = 0;

async function draw() {
  const state = current();
  choose(Number(resultOf(state)));
  const query = new URLSearchParams([...state].filter(([name]) => LISTED.includes(name))).toString() + `&${chosenName(state) ?? ""}`;
  const mine = ++turn;
  try {
    if (query !== listed) {
      list.setAttribute("aria-busy", "true");
      const answer = await source.rows(state);
      if (mine !== turn) return;
      [listed, answerRows, rowNumbers, matching] = [query, answer.rows, answer.rows.map((row) => row.row), answer.matching];
      keepingFocus(() => { drawFilters(state); drawTable(state, answer); drawCounts(state, answer); });
      list.removeAttribute("aria-busy");
      if ((answer.scanned ?? about.rows) < about.rows) setTimeout(() => { if (listed === query) { listed = null; draw(); } }, LATER);
    }
    const failing = answerRows.filter((row) => fails(row, landing.check));
    const opened = (failing.length ? failing : answerRows).at(landing.place);
    const number = state.has("row") ? Number(state.get("row")) : opened?.row ?? null;
    landing = { place: 0 };
    const card = number === null ? null : await source.row(number);
    if (mine !== turn) return;
    keepingFocus(() => drawRow(state, card, number));
    shown = number;
    for (const row of table.tBodies[0].rows) pointAt(row, row.dataset.row === String(number));
  } catch (error) {
    list.removeAttribute("aria-busy");
    drawFilters(state);
    if (query !== listed) for (const part of [table, pages]) part.replaceChildren(); // rows of another state
    listed = null;
    status.textContent = printable(error.message);
    one.replaceChildren(h("p", {}, toList(state), h("span", { class: "quiet" }, error.message)));
  }
}

/** Say which row of the list is open, and roll the list to it, but not the page. */
function pointAt(row, isShown) {
  if (!isShown) return row.removeAttribute("aria-current");
  row.setAttribute("aria-current", "true");
  const frame = table.parentElement;
  const head = table.tHead.offsetHeight;
  if (row.offsetTop - head < frame.scrollTop) frame.scrollTop = row.offsetTop - head;
  const below = row.offsetTop + row.offsetHeight - frame.clientHeight;
  if (below > frame.scrollTop) frame.scrollTop = below;
}

/** Draw, and put the focus back on what has the same place in the new drawing. */
function keepingFocus(drawing) {
  const id = document.activeElement?.id;
  drawing();
  if (id && document.activeElement.id !== id) document.getElementById(id)?.focus();
}

function show() {
  const state = current();
  const view = state.get("view") ?? ([...state.keys()].length ? "rows" : "overview");
  work.toggleAttribute("data-one", state.has("row"));
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#view=${view}`) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  if (location.hash) document.getElementById(`view=${view}`)?.scrollIntoView();
  return draw();
}

/** Open another row of the list; with `isFailing`, one that fails the chosen check. */
function move(by, isFailing = false) {
  const state = current();
  const check = isFailing ? shownCheck : null;
  const at = rowNumbers.indexOf(state.has("row") ? Number(state.get("row")) : shown);
  for (let next = at + by; next >= 0 && next < answerRows.length; next += by) {
    if (fails(answerRows[next], check)) return go({ row: answerRows[next].row, ...(isFailing && { check }) });
  }
  const offset = offsetOf(state) + by * PAGE;
  if (offset < 0 || offset >= matching) return (status.textContent = by > 0 ? "This is the last one." : "This is the first one.");
  landing = { place: by > 0 ? 0 : -1, check };
  return go({ offset: offset || null, row: null, ...(isFailing && { check }) });
}

// ---- tables, keys, print ----

function sortTable(target, head, at) {
  const isUp = head.getAttribute("aria-sort") !== "ascending";
  for (const other of target.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", isUp ? "ascending" : "descending");
  const bodies = [...target.tBodies];
  const several = bodies.length > 1;
  const value = (row) => {
    const { v } = row.cells[at].dataset;
    return v === undefined ? row.cells[at].textContent.trim() : v === "" ? null : Number(v);
  };
  const items = (several ? bodies : [...bodies[0].rows]).map((item) => [value(several ? item.rows[0] : item), item]);
  items.sort((a, b) => compare(a[0], b[0], isUp ? 1 : -1));
  for (const [, item] of items) (several ? target : bodies[0]).append(item);
}

for (const target of document.querySelectorAll("table.sortable")) {
  [...target.tHead.rows[0].cells].forEach((head, at) => {
    const button = h("button", { type: "button", click: () => sortTable(target, head, at) });
    button.append(...head.childNodes);
    head.append(button);
  });
}

const KEYS = [["← →", "previous, next row"], ["n p", "next, previous row that fails the check"], ["1 – 9", "check"], ["/", "search"], ["?", "this list"], ["Esc", "back to the list; take filters away"]];

const help = h("dialog", { "aria-labelledby": "help" }, h("h2", { id: "help" }, "Keys"),
  h("dl", {}, KEYS.flatMap(([keys, words]) => [h("dt", {}, keys.split(" ").flatMap((key, at) => [at > 0 && " ", key === "–" ? key : h("kbd", {}, key)])), h("dd", {}, words)])),
  h("button", { click: () => help.close() }, "Close"));
const sql = h("input", { "aria-labelledby": "sql", autocomplete: "off", spellcheck: "false", keydown: (event) => { if (event.key === "Enter") addCondition(); } });
const asking = h("dialog", { "aria-labelledby": "sql" }, h("h2", { id: "sql" }, "Rows for which this SQL expression over the columns holds"),
  h("p", {}, sql), h("p", { class: "quiet" }, "For example: reward < 0.5 AND model = 'oak'"),
  h("button", { click: () => addCondition() }, "Filter"), " ", h("button", { click: () => asking.close() }, "Cancel"));
document.body.append(help, asking);

function addFilter(name, value) {
  const several = ANY.has(name) ? [] : current().getAll(name).filter((other) => other !== value);
  location.hash = filtered(current(), { [name]: [...several, value] });
}

function addCondition() {
  asking.close();
  if (sql.value.trim()) addFilter("where", sql.value.trim());
}

document.querySelector("nav").append(h("button", { "aria-label": "Keys", title: "Keys (?)", click: () => help.showModal() }, "?"));

function leave() {
  if (document.activeElement === search) return search.blur();
  const state = current();
  return state.has("row") || state.has("check") ? go({ row: null, check: null }) : (location.hash = "#view=rows");
}

const ON_KEY = {
  ArrowLeft: () => move(-1),
  ArrowRight: () => move(1),
  n: () => move(1, true),
  p: () => move(-1, true),
  "/": () => { search.focus(); search.select(); },
  "?": () => help.showModal(),
  Escape: leave,
};

addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, select, textarea");
  if (help.open || asking.open || event.ctrlKey || event.metaKey || event.altKey || (isTyping && event.key !== "Escape")) return;
  const check = /^[1-9]$/.test(event.key) ? document.getElementById(`check-${event.key - 1}`) : null;
  const act = check ? () => check.click() : Object.hasOwn(ON_KEY, event.key) ? ON_KEY[event.key] : null;
  if (!act) return;
  event.preventDefault();
  act();
});

let typing = 0;
search.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => location.replace(filtered(current(), { text: search.value || null })), 250);
});
filters.addEventListener("change", () => {
  if (!filters.value) return;
  const [name, value] = JSON.parse(filters.value);
  filters.value = "";
  if (value === null) asking.showModal();
  else addFilter(name, value);
});

let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")];
  for (const details of closed) details.open = true;
});
addEventListener("afterprint", () => {
  for (const details of closed) details.open = false;
});
const measure = () => document.documentElement.style.setProperty("--head", `${document.querySelector("header").offsetHeight}px`);
addEventListener("resize", measure);
addEventListener("hashchange", show);
measure();

/** Wait until a server has read all rows and made the overview, and show it: the address of the state stays. */
async function untilComplete() {
  const overview = await asked("overview", `result=${page.result}`).catch(() => null);
  if (overview?.complete) location.reload();
  else setTimeout(untilComplete, LATER);
}

if (isServer || page.rows) {
  document.getElementById("view=rows").replaceChildren(work);
  show();
}
if (isServer && !about.complete) setTimeout(untilComplete, LATER);
