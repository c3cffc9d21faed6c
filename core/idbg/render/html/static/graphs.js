// What is in a graph, where, and what belongs to it? The tree, the drawing and the facts of one node, made of what is looked at.
(() => {
  const data = idbg.data("graphs-data"), viewer = document.getElementById("viewer");
  if (!data || !viewer || !data.graphs.length) return;
  viewer.hidden = false;
  const ROW = 24, SPARE = 12, MOST_LINKS = 40;
  const { strings, files, kernels, placings, graphs } = data;
  const by = (id) => document.getElementById(id);
  const tree = by("tree"), sizer = by("tree-rows"), filter = by("filter"), pick = by("graph-pick"), facts = by("facts");
  const drawing = by("drawing"), crumbs = by("crumbs"), only = by("only");
  const el = idbg.element;
  const state = { graph: 0, node: -1, group: 0, rows: [], at: -1, only: null };
  const folds = graphs.map(() => null);

  // ---- what a graph knows of itself, found when first asked
  const known = graphs.map(() => ({}));
  const once = (graph, name, make) => known[graph][name] ??= make(graphs[graph]);
  const addressOf = (graph, node) => `node:${graphs[graph].key}:${graphs[graph].addresses[node] ?? graphs[graph].names[node]}`;
  const numbers = (graph) => once(graph, "numbers", (of) => new Map(of.names.map((name, at) => [of.addresses[at] ?? name, at])));
  const readers = (graph) => once(graph, "readers", (of) => {
    const found = of.names.map(() => []);
    of.inputs.forEach((sources, at) => sources.forEach((source) => found[source].push(at)));
    return found;
  });
  const homes = (graph) => once(graph, "homes", (of) => {
    const found = new Int32Array(of.names.length);
    of.groups.forEach((group, at) => group[6].forEach((item) => { if (item >= 0) found[item] = at; }));
    return found;
  });
  const words = (graph) => once(graph, "words", (of) => of.names.map((name, at) =>
    `${name} ${strings[of.targets[at]]} ${strings[of.modules[at]]} ${strings[of.tensors[at]]}`.toLowerCase()));
  const broken = (graph) => once(graph, "broken", (of) => of.groups.map((group) =>
    Object.keys(of.violations).filter((node) => node >= group[3] && node < group[4]).length));
  const folded = (graph) => folds[graph] ??= new Set(graphs[graph].groups.flatMap((group, at) =>
    at && (strings[group[1]] === "inputs" || strings[group[1]] === "part" || group[5]) ? [at] : []));

  // ---- the tree: rows are items with their depth, and only those in sight are elements
  const flatten = () => {
    const graph = graphs[state.graph], rows = [], shut = folded(state.graph);
    if (state.only) for (const node of state.only.nodes) rows.push([node, 0]);
    else {
      const sought = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      if (sought.length) words(state.graph).forEach((text, at) => { if (sought.every((word) => text.includes(word))) rows.push([at, 0]); });
      else {
        const walk = (group, depth) => {
          for (const item of graph.groups[group][6]) {
            rows.push([item, depth]);
            if (item < 0 && !shut.has(~item)) walk(~item, depth + 1);
          }
        };
        walk(0, 0);
      }
    }
    state.rows = rows;
    state.at = rows.findIndex(([item]) => item === (state.node >= 0 ? state.node : ~state.group));
    by("tree-count").textContent = state.only || filter.value ? `${rows.length.toLocaleString("en")} of ${graph.names.length.toLocaleString("en")} nodes` : "";
    sizer.style.height = `${rows.length * ROW}px`;
    paint();
  };
  const rowOf = ([item, depth], at) => {
    const graph = graphs[state.graph];
    const row = el("div", { class: "row", role: "treeitem", id: `row-${at}`, "aria-level": depth + 1, "aria-selected": at === state.at });
    row.style.top = `${at * ROW}px`;
    row.style.paddingLeft = `${depth * 14 + 6}px`;
    row.dataset.at = at;
    if (item < 0) {
      const group = graph.groups[~item], open = !folded(state.graph).has(~item), bad = broken(state.graph)[~item];
      row.setAttribute("aria-expanded", open);
      row.append(el("span", { class: "fold" }, open ? "▾" : "▸"), el("strong", {}, strings[group[0]]), el("span", { class: "dim" },
        ` ${strings[group[1]]} · ${(group[4] - group[3]).toLocaleString("en")}${group[5] ? ` · as ${strings[group[5]]}` : ""}`));
      if (bad) row.append(el("span", { class: "warning" }, ` ${bad} ⚠`));
    } else {
      row.append(el("span", { class: "fold" }, graph.violations[item] ? "⚠" : ""), el("span", { class: `name ${strings[graph.roles[item]]}` }, graph.names[item]),
        el("span", { class: "dim" }, ` ${strings[graph.targets[item]]} ${strings[graph.tensors[item]]}`));
      if (graph.violations[item]) row.classList.add("violations");
    }
    return row;
  };
  const paint = () => {
    const first = Math.max(0, Math.floor(tree.scrollTop / ROW) - SPARE);
    const last = Math.min(state.rows.length, Math.ceil((tree.scrollTop + tree.clientHeight) / ROW) + SPARE);
    sizer.replaceChildren(...state.rows.slice(first, last).map((row, index) => rowOf(row, first + index)));
    tree.setAttribute("aria-activedescendant", `row-${state.at}`);
  };
  const see = () => {
    if (state.at < 0) return;
    const top = state.at * ROW;
    if (top < tree.scrollTop || top + ROW > tree.scrollTop + tree.clientHeight) tree.scrollTop = top - tree.clientHeight / 2;
    paint();
  };

  // ---- the drawing of one group
  const NS = "http://www.w3.org/2000/svg";
  const svg = (tag, attributes, ...children) => {
    const made = document.createElementNS(NS, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  const cut = (text, width) => { const most = Math.floor((width - 10) / 7); return text.length > most ? text.slice(0, most - 1) + "…" : text; };
  const curve = (points) => {
    let path = `M${points[0]} ${points[1]}`;
    for (let at = 2; at < points.length; at += 2) {
      const middle = (points[at - 1] + points[at + 1]) / 2;
      path += `C${points[at - 2]} ${middle} ${points[at]} ${middle} ${points[at]} ${points[at + 1]}`;
    }
    return path;
  };
  const boxes = (graph, group, drawn) => {
    const [placing, outside, [above, below]] = drawn, places = placings[placing][2], items = graph.groups[group][6];
    const found = items.map((item) => ({ item, kind: item < 0 ? "module" : strings[graph.roles[item]] }));
    for (const item of outside) found.push({ item, kind: "outside" });
    if (above) found.push({ text: `${above} values`, kind: "outside" });
    if (below) found.push({ text: `${below} readers`, kind: "outside" });
    return found.map((box, at) => ({ ...box, x: places[3 * at], y: places[3 * at + 1], width: places[3 * at + 2] }));
  };
  const said = ([title, kind, , first, last]) => [kind === title ? "" : strings[kind], `${(last - first).toLocaleString("en")} nodes`].filter(Boolean).join(" · ");
  const boxOf = (graph, box) => {
    const { item } = box;
    let [head, under, title] = [box.text, "outside of this module", box.text];
    if (item < 0) {
      const group = graph.groups[~item];
      [head, under] = [strings[group[0]], said(group)];
      title = `${head}: ${under}`;
    } else if (item >= 0) {
      [head, under] = [graph.names[item], strings[graph.tensors[item]] || strings[graph.targets[item]]];
      title = `${head} = ${strings[graph.targets[item]]}: ${strings[graph.tensors[item]]}`;
    }
    const made = svg("g", { class: `box ${box.kind}`, transform: `translate(${box.x},${box.y})` },
      svg("title", {}, title), svg("rect", { width: box.width, height: 34, rx: item < 0 ? 2 : 6 }),
      svg("text", { x: box.width / 2, y: 14, class: "head" }, cut(head, box.width)),
      svg("text", { x: box.width / 2, y: 27, class: "under" }, cut(under, box.width * 1.15)));
    if (item === undefined) return made;
    made.dataset.item = item;
    made.setAttribute("tabindex", "0");
    made.setAttribute("role", "button");
    if (item >= 0 && graph.violations[item] || item < 0 && broken(state.graph)[~item]) made.classList.add("bad");
    if (item === state.node) made.classList.add("chosen");
    return made;
  };
  const draw = () => {
    const graph = graphs[state.graph], group = graph.groups[state.group], drawn = graph.drawings[state.group];
    const [width, height, , between, points] = placings[drawn[0]], all = boxes(graph, state.group, drawn);
    const at = all.findIndex((box) => box.item === state.node);
    const lines = between.map(([from, to], line) => svg("path", { d: curve(points[line]), class: at >= 0 && (from === at || to === at) ? "line near" : "line" }));
    const picture = svg("svg", { width: width + 16, height: height + 16, viewBox: `-8 -8 ${width + 16} ${height + 16}`, role: "group", "aria-label": `Drawing of ${strings[group[0]] || "the graph"}` },
      ...lines, ...all.map((box) => boxOf(graph, box)));
    drawing.replaceChildren(picture);
    if (at >= 0) drawing.scrollTo(all[at].x + all[at].width / 2 - drawing.clientWidth / 2, all[at].y - drawing.clientHeight / 2);
    else drawing.scrollTo((width - drawing.clientWidth) / 2, 0);
    const way = [];
    for (let up = state.group; up >= 0; up = graph.groups[up][2]) way.unshift(up);
    crumbs.replaceChildren(...way.map((each) => {
      const button = el("button", { type: "button" }, each ? strings[graph.groups[each][0]] : "whole graph");
      if (each === state.group) button.setAttribute("aria-current", "true");
      button.addEventListener("click", () => openGroup(each));
      return button;
    }));
  };
  const start = (graph) => {
    let group = 0;
    for (;;) {
      const items = graphs[graph].groups[group][6];
      if (items.length !== 1 || items[0] >= 0) return group;
      group = ~items[0];
    }
  };

  // ---- the facts of what is chosen
  const link = (address, text, title = "") => el("a", { href: "#" + address, title }, text);
  const nodeLink = (graph, node) => link(addressOf(graph, node), graphs[graph].names[node], strings[graphs[graph].targets[node]]);
  const listed = (all, make) => {
    const found = all.slice(0, MOST_LINKS).flatMap((each) => [make(each), " "]);
    if (all.length > MOST_LINKS) found.push(`and ${(all.length - MOST_LINKS).toLocaleString("en")} more`);
    return found;
  };
  const fact = (name, ...told) => told.some((each) => each !== "") ? [el("dt", {}, name), el("dd", {}, ...told)] : [];
  const place = (of, node) => {
    const file = files[of.files[node]];
    if (!file.short) return [];
    return [link(`line:${file.address}:${of.lines[node]}`, `${file.short}:${of.lines[node]}`), el("code", {}, " " + strings[of.codes[node]])];
  };
  const tell = () => {
    const { graph, node } = state, of = graphs[graph];
    if (node < 0) {
      const group = of.groups[state.group];
      facts.replaceChildren(el("h3", {}, strings[group[0]] || "whole graph"), el("p", { class: "dim" },
        `${said(group)}. Choose a node for what it computes, its kernels and its line.`));
      return;
    }
    const violations = (of.violations[node] || []).map(([severity, rule, found, fix]) => el("li", {},
      el("strong", { class: strings[severity] }, `${strings[severity]} ${strings[rule]}`), `: ${strings[found]}`, strings[fix] ? el("div", { class: "fix" }, `→ ${strings[fix]}`) : ""));
    const others = Object.entries(of.others).flatMap(([other, column]) => column[node] ? fact(graphs[other].title, ...listed(column[node], (each) => nodeLink(+other, each))) : []);
    const own = of.kernels[node] || [], line = place(of, node);
    facts.replaceChildren(el("h3", {}, of.names[node]), el("dl", { class: "facts" },
      ...fact("computes", el("code", {}, `${strings[of.targets[node]]}(${strings[of.args[node]]})`)),
      ...fact("gives", strings[of.tensors[node]]), ...fact("module", strings[of.modules[node]]), ...fact("role", strings[of.roles[node]]),
      ...(line.length ? fact("your line", ...line) : []),
      ...fact("kernels", ...(own.length ? listed(own, (each) => link(kernels[each][0], kernels[each][1])) : ["none is known"])),
      ...(violations.length ? fact("violations", el("ul", {}, ...violations)) : []),
      ...fact("reads", ...listed(of.inputs[node], (each) => nodeLink(graph, each))),
      ...fact("read by", ...listed(readers(graph)[node], (each) => nodeLink(graph, each))), ...others));
  };

  // ---- going somewhere
  const openGraph = (graph) => {
    if (graph !== state.graph || !state.rows.length) Object.assign(state, { graph, node: -1, group: start(graph), only: null });
    filter.value = "";
    state.only = null;
    only.hidden = true;
    pick.value = graph;
    by("graph-detail").textContent = graphs[graph].detail;
  };
  const openGroup = (group) => { Object.assign(state, { group, node: -1 }); flatten(); see(); draw(); tell(); };
  const choose = (node, remember = true) => {
    const groups = graphs[state.graph].groups;
    Object.assign(state, { node, group: homes(state.graph)[node] });
    for (let up = state.group; up > 0; up = groups[up][2]) folded(state.graph).delete(up);
    flatten(); see(); draw(); tell();
    if (remember) try { history.replaceState(null, "", "#" + addressOf(state.graph, node)); } catch { /* a page that may not say where it is */ }
  };
  const belonging = (address) => {
    const [, file, line] = /^line:(.*):(\d+)$/.exec(address) || [];
    const kernel = kernels.findIndex(([of]) => of === address);
    return graphs.map((of) => file === undefined
      ? Object.keys(of.kernels).filter((node) => of.kernels[node].includes(kernel)).map(Number)
      : of.lines.flatMap((each, node) => each === +line && files[of.files[node]].address === file ? [node] : []));
  };
  const showOnly = (address, name, wanted = -1) => {
    const found = belonging(address);
    const graph = found[wanted]?.length ? wanted : found[state.graph]?.length ? state.graph : found.findIndex((nodes) => nodes.length);
    if (graph < 0) return;
    openGraph(graph);
    state.only = { nodes: found[graph], address };
    const elsewhere = found.flatMap((nodes, other) => {
      if (!nodes.length || other === graph) return [];
      const button = el("button", { type: "button" }, `${graphs[other].title}: ${nodes.length}`);
      button.addEventListener("click", () => showOnly(address, name, other));
      return [button];
    });
    const all = el("button", { type: "button" }, "all nodes");
    all.addEventListener("click", () => { state.only = null; only.hidden = true; flatten(); see(); });
    only.replaceChildren("the nodes of ", link(address, name), " ", all, " ", ...elsewhere);
    only.hidden = false;
    choose(found[graph][0], false);
  };
  const into = () => viewer.scrollIntoView({ block: "start" });
  idbg.arrivals.push((address) => {
    const [kind, run, frame, stage, part, name] = address.split(":");
    const graph = graphs.findIndex((of) => of.key === [run, frame, stage, part].join(":"));
    if (kind === "of") {
      const of = address.slice(3), at = kernels.findIndex(([each]) => each === of);
      showOnly(of, at >= 0 ? kernels[at][1] : (/[^/]*$/.exec(decodeURIComponent(of))[0]));
    } else if (kind === "graph" && graph >= 0) { openGraph(graph); openGroup(start(graph)); }
    else if (kind === "node" && graph >= 0 && numbers(graph).has(name)) { openGraph(graph); choose(numbers(graph).get(name), false); }
    else if (kind === "node" && name !== undefined) {
      only.replaceChildren("The graph of this node is not in the page: the table below names those that are.");
      only.hidden = false;
    } else return false;
    into();
    tree.focus({ preventScroll: true });
    return true;
  });
  idbg.finders.push((sought) => graphs.flatMap((of, graph) => {
    const found = [];
    words(graph).forEach((text, at) => {
      if (!sought.every((word) => text.includes(word))) return;
      found.push({ kind: "node", to: addressOf(graph, at), text: of.names[at], detail: `${strings[of.targets[at]]} · ${of.title} · ${strings[of.modules[at]]}`,
        rank: idbg.rank(sought, of.names[at], text) });
    });
    return found;
  }));

  // ---- what the user does
  pick.append(...graphs.map((of, at) => el("option", { value: at }, `${of.title} (${of.names.length.toLocaleString("en")} nodes)`)));
  pick.addEventListener("change", () => { openGraph(+pick.value); openGroup(start(+pick.value)); });
  filter.addEventListener("input", () => { state.only = null; only.hidden = true; tree.scrollTop = 0; flatten(); });
  filter.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { filter.value = ""; flatten(); see(); }
    else if (event.key === "Enter" || event.key === "ArrowDown") { tree.focus(); move(0, true); }
    else return;
    event.preventDefault();
  });
  let painting = false;
  tree.addEventListener("scroll", () => {
    if (painting) return;
    painting = true;
    requestAnimationFrame(() => { painting = false; paint(); });
  }, { passive: true });
  const take = (at, toggle) => {
    const row = state.rows[at];
    if (!row) return;
    if (row[0] >= 0) return choose(row[0]);
    const shut = folded(state.graph), group = ~row[0];
    if (toggle) shut.has(group) ? shut.delete(group) : shut.add(group);
    openGroup(group);
  };
  const move = (to) => take(Math.min(Math.max(to, 0), state.rows.length - 1), false);
  tree.addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (row) take(+row.dataset.at, true);
  });
  tree.addEventListener("keydown", (event) => {
    const row = state.rows[state.at], shut = folded(state.graph), group = row && row[0] < 0 ? ~row[0] : -1;
    const page = Math.floor(tree.clientHeight / ROW) - 1;
    const keys = {
      ArrowDown: () => move(state.at + 1), ArrowUp: () => move(state.at - 1), PageDown: () => move(state.at + page), PageUp: () => move(state.at - page),
      Home: () => move(0), End: () => move(state.rows.length - 1), Enter: () => take(state.at, true),
      ArrowRight: () => { if (group > 0 && shut.has(group)) take(state.at, true); else move(state.at + 1); },
      ArrowLeft: () => {
        if (group > 0 && !shut.has(group)) return take(state.at, true);
        const above = graphs[state.graph].groups[group > 0 ? group : 0][2], home = group > 0 ? above : homes(state.graph)[row?.[0] ?? 0];
        if (home > 0) openGroup(home);
      },
    };
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  const pressed = (event) => {
    const box = event.target.closest("[data-item]");
    if (!box) return;
    const item = +box.dataset.item;
    item < 0 ? openGroup(~item) : choose(item);
    drawing.querySelector(`[data-item="${item}"]`)?.focus({ preventScroll: true });
  };
  drawing.addEventListener("click", pressed);
  drawing.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pressed(event); } });

  // the newest run's first stage with the most nodes
  const [run] = graphs[0].key.split(":");
  let first = 0;
  graphs.forEach((of, at) => { if (of.key.startsWith(run + ":") && of.key.includes(":dynamo:") && of.names.length > graphs[first].names.length) first = at; });
  openGraph(first);
  openGroup(start(first));
})();
