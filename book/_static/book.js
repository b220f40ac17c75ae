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
  ];

  function name() {
    for (const [selector, label] of unnamed) {
      for (const element of document.querySelectorAll(selector)) {
        if (!element.getAttribute("aria-label")) element.setAttribute("aria-label", label);
      }
    }
  }

  // docutils calls a bibliography a list of entries, and its entries something that a list may not hold.
  function bibliography() {
    for (const element of document.querySelectorAll(".citation-list, .citation-list > [role]")) {
      element.removeAttribute("role");
    }
  }

  // A table with a column "verdict": each verdict gets the sign and colour of its first words.
  function verdicts() {
    const words = ["reproduced", "contradicted", "no difference", "inconclusive", "checked", "not run"];
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
