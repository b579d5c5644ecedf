// Tables with class "sortable": a click on a heading sorts, a field above filters the rows.
(() => {
  const MANY = 12; // rows from which on a filter helps
  const text = new Intl.Collator("en", { numeric: true });

  // The column that a heading stands over, or -1 for one over several.
  const columnsOf = (head) => {
    const taken = [], found = new Map();
    [...head.rows].forEach((row, at) => {
      taken[at] ??= [];
      let column = 0;
      for (const cell of row.cells) {
        while (taken[at][column]) column++;
        for (let down = 0; down < cell.rowSpan; down++) {
          taken[at + down] ??= [];
          for (let right = 0; right < cell.colSpan; right++) taken[at + down][column + right] = true;
        }
        const isLowest = at + cell.rowSpan === head.rows.length;
        if (cell.colSpan === 1 && isLowest) found.set(cell, column);
      }
    });
    return found;
  };

  const valueOf = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.value === undefined) return cell.textContent.trim();
    return cell.dataset.value === "" ? NaN : Number(cell.dataset.value);
  };

  // What is not known comes last, whichever way.
  const compare = (a, b, sign) => {
    if (typeof a !== "number" || typeof b !== "number") return sign * text.compare(a, b);
    if (isNaN(a) || isNaN(b)) return isNaN(a) - isNaN(b);
    return sign * (a - b);
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0], rows = [...body.rows];
    if (rows.length < 2) continue;
    for (const [heading, column] of columnsOf(table.tHead)) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const down = heading.getAttribute("aria-sort") === "ascending";
        for (const other of table.tHead.querySelectorAll("[aria-sort]")) {
          other.removeAttribute("aria-sort");
        }
        heading.setAttribute("aria-sort", down ? "descending" : "ascending");
        const keys = new Map(rows.map((row) => [row, valueOf(row, column)]));
        rows.sort((a, b) => compare(keys.get(a), keys.get(b), down ? -1 : 1));
        body.append(...rows);
      });
    }
    if (rows.length < MANY) continue;
    const label = document.createElement("label"), field = document.createElement("input");
    const told = document.createElement("output");
    label.className = "filter";
    field.type = "search";
    label.append("Show rows with ", field, told);
    table.closest(".wide").before(label);
    const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        row.hidden = !words.every((word) => texts.get(row).includes(word));
        shown += !row.hidden;
      }
      told.textContent = words.length ? `${shown} of ${rows.length}` : "";
    });
  }
})();
