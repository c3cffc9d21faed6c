"use strict";
// Where does an address lead, which theme is shown, what do the keys do?
const idbg = {
  arrivals: [],  // functions of a decoded address that take it (true) or leave it to the page
  finders: [],  // functions of the words sought that give what they found: {kind, text, detail, to, rank}
  data(name) {
    const element = document.getElementById(name);
    return element ? JSON.parse(element.textContent) : null;
  },
  element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  },
  at: "",  // the address at which the page arrived last
  // Arrive at once, so that the next key meets what it led to; also where the page is at this address already.
  go(address) {
    location.hash = address;
    idbg.arrive();
  },
  arrive() {
    idbg.at = location.hash;
    const address = idbg.at.slice(1);
    if (!address) return;
    if (idbg.arrivals.some((takes) => takes(address))) return;
    let element = document.getElementById(address);
    if (!element) {
      try { element = document.getElementById(decodeURIComponent(address)); } catch { return; }
    }
    if (element) idbg.show(element);
  },
  show(element) {
    for (let up = element; up; up = up.parentElement) if (up.tagName === "DETAILS") up.open = true;
    element.scrollIntoView({ block: "start" });
    element.classList.remove("arrived");
    void element.offsetWidth;
    element.classList.add("arrived");
    const focusable = element.tagName === "DETAILS" ? element.querySelector("summary") : element;
    focusable.focus({ preventScroll: true });
  },
};

(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  // a page of a file may not be allowed to remember anything
  const remembered = (value) => {
    try { return value ? localStorage.setItem("idbg-theme", value) : localStorage.getItem("idbg-theme"); } catch { return null; }
  };
  const turn = () => {
    const now = root.dataset.theme || (dark.matches ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
    remembered(root.dataset.theme);
  };
  const first = remembered();
  if (first === "dark" || first === "light") root.dataset.theme = first;
  document.getElementById("theme").addEventListener("click", turn);

  const help = document.getElementById("help");
  document.getElementById("keys").addEventListener("click", () => help.showModal());

  const sections = [...document.querySelectorAll("main > section")];
  const current = () => sections.findLastIndex((section) => section.getBoundingClientRect().top < 90);
  const step = (by) => {
    const to = sections[Math.min(Math.max(current() + by, 0), sections.length - 1)];
    if (to) idbg.go(to.id);
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    if (event.target.closest("input, textarea, select")) return;
    const keys = { "?": () => help.showModal(), t: turn, n: () => step(1), p: () => step(-1), "/": () => document.getElementById("search").select() };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });

  const links = new Map([...document.querySelectorAll(".side a")].map((link) => [link.hash.slice(1), link]));
  let marked = null;
  const mark = () => {
    const link = links.get(sections[Math.max(current(), 0)]?.id);
    if (link === marked) return;
    marked?.removeAttribute("aria-current");
    (marked = link)?.setAttribute("aria-current", "true");
  };
  let asked = false;
  addEventListener("scroll", () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; mark(); });
  }, { passive: true });
  for (const code of document.querySelectorAll("pre[data-first]")) code.style.counterReset = `line ${code.dataset.first - 1}`;
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link && link.hash === location.hash) idbg.arrive();
  });
  addEventListener("hashchange", () => { if (location.hash !== idbg.at) idbg.arrive(); });
  addEventListener("DOMContentLoaded", () => { mark(); idbg.arrive(); });
  addEventListener("load", () => setTimeout(idbg.arrive));  // the browser itself goes to the element of that name meanwhile
})();
