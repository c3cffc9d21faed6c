// A click on a head sorts the rows below it by what their cells hold; a second one turns the order around.
(() => {
  const value = (cell) => { const by = cell?.dataset.by ?? cell?.textContent ?? ""; return by !== "" && !isNaN(by) ? Number(by) : by; };
  const sort = (heads, at, rows, cells) => {
    const head = heads[at], down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((each) => each.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const known = rows.map((row) => ({ row, by: value(cells(row)[at]) }));
    known.sort((a, b) => (a.by === "") - (b.by === "") || (a.by < b.by ? -1 : a.by > b.by ? 1 : 0) * (down ? -1 : 1));
    const parent = rows[0]?.parentNode;
    known.forEach(({ row }) => parent.append(row));
  };
  document.addEventListener("click", (event) => {
    const head = event.target.closest(".v-sorts th, .v-heads > span"), table = head?.closest(".v-sorts");
    if (!table) return;
    const heads = [...head.parentNode.children], at = heads.indexOf(head);
    if (table.tagName === "TABLE") return sort(heads, at, [...table.tBodies[0].rows], (row) => row.cells);
    sort(heads, at, [...table.children].filter((each) => each.matches(".v-row")), (row) => row.querySelector(".v-line").children);
  });
})();
