"use strict";
(() => {
  const value = (row, at) => {
    const cell = row.querySelectorAll("td, th")[at];
    const data = cell && cell.dataset.v;
    return data === undefined ? (cell ? cell.textContent.trim() : "") : data === "" ? null : Number(data);
  };
  const compare = (a, b) =>
    a === null || b === null
      ? (a === null) - (b === null)
      : typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  const sort = (table, head, at) => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const bodies = [...table.tBodies];
    const items = bodies.length > 1 ? bodies : [...bodies[0].rows];
    const parent = bodies.length > 1 ? table : bodies[0];
    const keyed = items.map((item) => [value(bodies.length > 1 ? item.rows[0] : item, at), item]);
    keyed.sort((a, b) => (a[0] === null || b[0] === null || up ? 1 : -1) * compare(a[0], b[0]));
    for (const [, item] of keyed) parent.append(item);
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sort(table, head, at));
      head.append(button);
    });
  }
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const details of closed) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of closed) details.open = false;
  });
})();
