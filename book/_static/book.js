// What the theme leaves undone for people who use a keyboard or a screen reader. No page needs this file to be read.
"use strict";

(function () {
  const unnamed = [
    [".btn-source-repository-button", "Source repository"],
    [".primary-toggle", "Show or hide the table of contents"],
    [".secondary-toggle", "Show or hide the contents of this page"],
    [".btn-fullscreen-button", "Full screen"],
    ["#pst-primary-sidebar-checkbox", "Table of contents"],
    ["#pst-secondary-sidebar-checkbox", "Contents of this page"],
    [".bd-sidebar-primary summary", "Show or hide the pages below this one"],
    [".overlay-primary, .overlay-secondary", "Close the sidebar"],
    ["nav.page-toc", "Contents of this page"],
  ];

  function name() {
    for (const [selector, label] of unnamed) {
      for (const element of document.querySelectorAll(selector)) {
        if (!element.getAttribute("aria-label")) element.setAttribute("aria-label", label);
      }
    }
    for (const icon of document.querySelectorAll("button > svg.tb-icon")) icon.setAttribute("aria-hidden", "true");
  }

  // docutils calls a bibliography a list of entries, and its entries something that a list may not hold.
  function bibliography() {
    for (const element of document.querySelectorAll(".citation-list, .citation-list > [role]")) {
      element.removeAttribute("role");
    }
  }

  // A table with a column "verdict": each verdict gets the sign and colour of its first words.
  function verdicts() {
    const words = ["reproduced", "contradicted", "depends", "no difference", "inconclusive", "checked", "not run"];
    for (const table of document.querySelectorAll(".bd-article table.table")) {
      const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
      const column = heads.indexOf("verdict");
      if (column < 0 || heads.length < 4) continue;
      table.classList.add("judged");
      for (const row of table.querySelectorAll("tbody tr")) {
        const said = row.children[column] && row.children[column].querySelector("strong");
        const word = said && words.find((start) => said.textContent.startsWith(start));
        if (word) said.classList.add("said", "said-" + word.replace(" ", "-"));
      }
    }
  }

  // The scorecard: lists that choose which of its rows are shown, told by what stands in them. What was chosen is kept in the
  // address, so that a choice can be linked to.
  const choices = [
    ["paper", "Paper", null],
    ["kind", "Kind", { paper: "a paper's claim", ours: "this book's addition", proof: "a proof or an identity" }],
    ["verdict", "Verdict, in any run", null],
    ["data", "Data, in any run", { own: "the paper's own", "stand-in": "a stand-in", none: "about no data set" }],
  ];

  function filters() {
    const tables = [...document.querySelectorAll("table.mia-scorecard")];
    const first = tables.length && tables[0].closest("section");
    if (!first || document.querySelector(".mia-filters")) return;
    const rows = tables.flatMap((table) => {
      const section = table.closest("section");
      const paper = section.querySelector("h2").firstChild.textContent.trim();
      return [...table.querySelectorAll("tbody tr")].map((row) => ({
        row, section, paper, kind: row.querySelector(".mia-claim").dataset.kind,
        runs: [...row.querySelectorAll(".mia-run")].map((run) => run.dataset),
      }));
    });
    const form = document.createElement("form");
    form.className = "mia-filters";
    form.setAttribute("role", "search");
    form.setAttribute("aria-label", "Which claims to show");
    const lists = {};
    for (const [name, title, words] of choices) {
      const there = new Set(rows.flatMap((one) => (name in one ? [one[name]] : one.runs.map((run) => run[name]))));
      const label = document.createElement("label");
      const list = (lists[name] = document.createElement("select"));
      label.textContent = title;
      list.add(new Option("all", ""));
      for (const value of words ? Object.keys(words) : there) {
        if (there.has(value)) list.add(new Option(words ? words[value] : value, value));
      }
      label.append(list);
      form.append(label);
    }
    const reset = document.createElement("button");
    reset.type = "reset";
    reset.textContent = "Show all";
    const said = document.createElement("p");
    said.setAttribute("role", "status");
    form.append(reset, said);

    function apply() {
      const asked = Object.fromEntries(Object.entries(lists).map(([name, list]) => [name, list.value]));
      const fits = (run) => ["verdict", "data"].every((name) => !asked[name] || run[name] === asked[name]);
      let shown = 0;
      for (const one of rows) {
        const fit = ["paper", "kind"].every((name) => !asked[name] || one[name] === asked[name]) && one.runs.some(fits);
        one.row.hidden = !fit;
        shown += fit;
      }
      for (const section of new Set(rows.map((one) => one.section))) {
        section.hidden = rows.every((one) => one.section !== section || one.row.hidden);
      }
      said.textContent = shown + " of " + rows.length + " claims shown";
      return new URLSearchParams(Object.entries(asked).filter(([, value]) => value)).toString();
    }

    function read() {
      const asked = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
      for (const [name, list] of Object.entries(lists)) list.value = asked.get(name) || "";
      for (const list of Object.values(lists)) if (list.selectedIndex < 0) list.value = "";
      apply();
    }

    function changed() {
      const state = apply();
      history.replaceState(null, "", state ? "#" + state : location.pathname + location.search);
    }

    form.addEventListener("change", changed);
    form.addEventListener("reset", () => setTimeout(changed));
    form.addEventListener("submit", (event) => event.preventDefault());
    window.addEventListener("hashchange", read);
    first.before(form);
    read();
  }

  // A link to what is folded opens it, and so does printing.
  function unfold() {
    const place = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const fold = place && place.closest("details:not([open])");
    if (fold) {
      fold.open = true;
      place.scrollIntoView();
    }
  }

  let opened = [];
  window.addEventListener("hashchange", unfold);
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details.mia-fold:not([open])")];
    for (const fold of opened) fold.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const fold of opened) fold.open = false;
  });

  // What scrolls sideways must be reachable without a mouse; what fits must not be one more stop. Fonts, charts and
  // mathematics come late, and change what fits.
  const boxes = ".bd-article :is(.pst-scrollable-table-container, .mia-scroll, pre, div.math, .cell_output)";
  const sizes = new ResizeObserver(scrollable);

  function watch() {
    for (const box of document.querySelectorAll(boxes)) {
      for (const part of [box, ...box.children]) sizes.observe(part);
    }
  }

  function scrollable() {
    for (const box of document.querySelectorAll(boxes)) {
      const style = getComputedStyle(box);
      const scrolls = box.scrollWidth > box.clientWidth + 1 && ["auto", "scroll"].includes(style.overflowX);
      if (scrolls) {
        box.tabIndex = 0;
      } else if (box.tabIndex === 0) {
        box.removeAttribute("tabindex");
      }
    }
  }

  function tidy() {
    name();
    bibliography();
    verdicts();
    filters();
    unfold();
    scrollable();
    watch();
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", tidy);
  else tidy();
  window.addEventListener("load", () => {
    tidy();
    const mathematics = window.MathJax && window.MathJax.startup && window.MathJax.startup.promise;
    if (mathematics) mathematics.then(scrollable);
  });
  let settled;
  window.addEventListener("resize", () => {
    scrollable();
    clearTimeout(settled);
    settled = setTimeout(scrollable, 500); // after the theme, which sets its own tab stops 300 ms later
  });
})();
