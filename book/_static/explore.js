// Puts the chart of an explorable figure in the place of its picture, which stays for print and where no script runs.
// Charts are Vega-Lite (vega.js); pages.py writes each into its page, after its figure.
"use strict";

(function () {
  const NARROW = 600; // pixels; below, panels stand under one another

  function panels(spec) {
    const parts = spec.concat || spec.vconcat;
    return parts ? parts.flatMap(panels) : [spec];
  }

  // A specification whose panels are as wide as there is room for; `axes` is what a panel needs besides.
  function fitted(spec, room, axes) {
    const copy = structuredClone(spec);
    if (!copy.concat && !copy.vconcat) return copy; // one view is as wide as its container by itself
    const across = copy.concat ? copy : copy.vconcat.find((part) => part.concat);
    const beside = new Set(across ? panels(across) : []);
    if (across) across.columns = room < NARROW ? 1 : across.columns || across.concat.length;
    for (const panel of panels(copy)) {
      const square = panel.width === panel.height;
      const wide = beside.has(panel) ? room / across.columns - axes : Math.min(panel.width, room - axes);
      panel.width = Math.max(120, Math.floor(wide));
      if (square) panel.height = panel.width;
    }
    return copy;
  }

  function add(parent, tag, attributes) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    parent.append(element);
    return element;
  }

  function mount(holder) {
    const figure = document.getElementById(holder.dataset.figure);
    const picture = figure && figure.querySelector("img");
    if (!picture) return;
    const spec = JSON.parse(holder.querySelector("script").textContent);
    const live = document.createElement("div");
    live.className = "mia-live";
    (picture.closest("a") || picture).after(live);
    add(live, "p", { class: "mia-instructions" }).textContent = spec.usermeta.instructions;
    const controls = add(live, "div", { class: "mia-controls", role: "group", "aria-label": "Controls of the chart" });
    const chart = add(live, "div", { class: "mia-chart" });
    const said = add(live, "p", { class: "mia-said", role: "status" });
    const moved = (spec.params || []).filter((one) => one.bind).map((one) => one.name);
    figure.classList.add("mia-explored");
    let drawn = null, width = 0, axes = 60, settled;

    async function embed() {
      controls.replaceChildren();
      const result = await vegaEmbed(chart, fitted(spec, width, axes), { renderer: "svg", actions: false, bind: controls });
      if (drawn) {
        for (const name of moved) result.view.signal(name, drawn.view.signal(name)); // as the reader left it
        await result.view.runAsync();
        drawn.finalize();
      }
      drawn = result;
      for (const name of moved) result.view.addSignalListener(name, tellSoon);
    }

    async function draw() {
      width = chart.clientWidth;
      axes = 60;
      await embed();
      const room = parseInt(chart.querySelector("svg").getAttribute("width"), 10);
      const columns = width < NARROW ? 1 : spec.columns || 1;
      if (spec.concat && Math.abs(room - width) > 2) {
        axes += (room - width) / columns;
        await embed();
      }
    }

    function tell() {
      said.textContent = [...chart.querySelectorAll(".said_marks text")]
        .map((text) => (text.children.length ? [...text.children] : [text]).map((line) => line.textContent).join(". ")).join(". ");
    }

    function tellSoon() { // a screen reader would otherwise begin anew at each step of a slider
      clearTimeout(settled);
      settled = setTimeout(tell, 300);
    }

    // Drawn when there is room, which a figure in a closed box has not, and again when there is more or less of it.
    let waiting, drawing = Promise.resolve();
    new ResizeObserver(() => {
      clearTimeout(waiting);
      waiting = setTimeout(() => {
        if (!live.clientWidth || Math.abs(chart.clientWidth - width) < 8) return;
        drawing = drawing.then(draw).catch((error) => {
          figure.classList.remove("mia-explored");
          live.remove();
          console.error(error);
        });
      }, drawn ? 200 : 0);
    }).observe(live);
  }

  document.querySelectorAll(".mia-explore").forEach(mount);
})();
