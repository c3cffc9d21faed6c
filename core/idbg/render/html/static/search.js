// What in the page has these words?
(() => {
  const MOST = 60;
  const box = document.getElementById("search"), list = document.getElementById("found");
  let hits = [], chosen = -1, waiting = 0, indexed = null;

  // the best: the whole text; then what begins with the words; then what has them in its text; then elsewhere
  idbg.rank = (words, text, detail = "") => {
    const low = text.toLowerCase(), all = low + " " + detail.toLowerCase();
    if (!words.every((word) => all.includes(word))) return -1;
    if (low === words.join(" ")) return 0;
    if (low.startsWith(words[0])) return 1;
    return low.includes(words[0]) ? 2 : 3;
  };
  const index = () => indexed ??= [...document.querySelectorAll("[data-find]")].map((element) => ({
    kind: element.dataset.find, to: element.id, text: (element.dataset.words || element.textContent).trim().replace(/\s+/g, " ").slice(0, 300),
  }));
  idbg.finders.push((words) => index().flatMap((entry) => {
    const rank = idbg.rank(words, entry.text);
    // a finding names a line, a node or a rule, which come first
    const beside = { section: -0.5, finding: 0.5 }[entry.kind] ?? 0;
    return rank < 0 ? [] : [{ ...entry, rank: rank + beside }];
  }));

  const choose = (to) => {
    list.children[chosen]?.setAttribute("aria-selected", "false");
    chosen = to;
    const hit = list.children[chosen];
    if (!hit) return box.removeAttribute("aria-activedescendant");
    hit.setAttribute("aria-selected", "true");
    hit.scrollIntoView({ block: "nearest" });
    box.setAttribute("aria-activedescendant", hit.id);
  };
  const close = () => { list.hidden = true; box.setAttribute("aria-expanded", "false"); chosen = -1; };
  const enter = (at) => {
    const hit = hits[at];
    if (!hit) return;
    close();
    box.blur();
    idbg.go(hit.to);
  };
  const seek = () => {
    clearTimeout(waiting);
    waiting = 0;
    list.removeAttribute("aria-busy");
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return close();
    const all = idbg.finders.flatMap((finds) => finds(words)).sort((a, b) => a.rank - b.rank);
    hits = all.slice(0, MOST);
    list.replaceChildren(...hits.map((hit, at) => {
      const row = idbg.element("div", { class: "hit", role: "option", id: `hit-${at}`, "aria-selected": "false" },
        idbg.element("span", { class: "kind" }, hit.kind), idbg.element("span", { class: "text" }, hit.text));
      if (hit.detail) row.append(idbg.element("span", { class: "detail" }, hit.detail));
      row.addEventListener("mousedown", (event) => { event.preventDefault(); enter(at); });
      return row;
    }));
    if (!all.length) list.append(idbg.element("p", {}, "Nothing here has these words."));
    if (all.length > MOST) list.append(idbg.element("p", {}, `… and ${(all.length - MOST).toLocaleString("en")} more: another word finds fewer.`));
    list.hidden = false;
    box.setAttribute("aria-expanded", "true");
    chosen = -1;
    choose(hits.length ? 0 : -1);
  };
  box.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(seek, 60); list.setAttribute("aria-busy", "true"); });
  box.addEventListener("focus", () => { if (box.value) seek(); });
  box.addEventListener("blur", close);
  box.addEventListener("keydown", (event) => {
    if (waiting && ["ArrowDown", "ArrowUp", "Enter"].includes(event.key)) seek();  // the keys are for what was typed
    const last = hits.length - 1;
    if (event.key === "ArrowDown") choose(chosen >= last ? 0 : chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen <= 0 ? last : chosen - 1);
    else if (event.key === "Enter") { if (list.hidden) seek(); enter(Math.max(chosen, 0)); }
    else if (event.key === "Escape") { box.value = ""; close(); box.blur(); }
    else return;
    event.preventDefault();
  });
})();
