// The membership game: a reader guesses, record by record, and is then compared with the attacks on the same records.
// publish/pages.py writes the deal into the page. It is taken out before the game begins, and nothing is kept or sent.
"use strict";

(function () {
  const SURE = ["surely not", "probably not", "cannot say", "probably", "surely"];
  const ROUNDS = ["only its loss", "its loss beside the losses of references that were not trained on it"];
  const SVG = "http://www.w3.org/2000/svg";
  const INK = "#222222", FAINT = "#767676", PALE = "#d5d5d5";

  // --- numbers; a guess and a place of a score are both "higher = more likely a member" ---

  function auc(values, members) {
    let wins = 0, pairs = 0;
    values.forEach((a, i) => members[i] && values.forEach((b, j) => {
      if (members[j]) return;
      pairs += 1;
      wins += a > b ? 1 : a === b ? 0.5 : 0;
    }));
    return wins / pairs;
  }

  function levels(values) {
    return [...new Set(values)].sort((a, b) => a - b);
  }

  // From nobody called a member to everybody: [wrongly, rightly] called.
  function roc(values, members) {
    const steps = levels(values).reverse().map((level) => [false, true].map(
      (kind) => values.filter((value, i) => value >= level && members[i] === kind).length));
    return [[0, 0], ...steps];
  }

  // Found with at most so many wrong.
  function found(values, members, wrong) {
    return roc(values, members).filter((step) => step[0] <= wrong).pop();
  }

  function choose(n, k) {
    let ways = 1;
    for (let i = 1; i <= k; i++) ways = ways * (n - k + i) / i;
    return Math.round(ways);
  }

  // In how many of all ways to name the members these answers have each AUC: exact, ties and all.
  // Level by level from below: states are members named so far and twice the pairs won.
  function blind(values, members) {
    const named = members.filter(Boolean).length, total = values.length;
    let ways = new Map([["0,0", 1]]), before = 0;
    for (const level of levels(values)) {
      const here = values.filter((value) => value === level).length, next = new Map();
      for (const [state, count] of ways) {
        const [held, won] = state.split(",").map(Number);
        for (let j = 0; j <= here && held + j <= named; j++) {
          const key = [held + j, won + 2 * j * (before - held) + j * (here - j)].join(",");
          next.set(key, (next.get(key) || 0) + count * choose(here, j));
        }
      }
      ways = next;
      before += here;
    }
    const every = choose(total, named), pairs = 2 * named * (total - named);
    return [...ways].map(([state, count]) => state.split(",").map(Number).concat(count))
      .filter(([held]) => held === named).map(([, won, count]) => [won / pairs, count / every]).sort((a, b) => a[0] - b[0]);
  }

  // Share of those with at least this AUC, and where the middle 95 % of them lie.
  function chance(values, members) {
    const law = blind(values, members), reached = auc(values, members);
    const end = (ordered) => {
      let sum = 0;
      for (const [value, share] of ordered) if ((sum += share) > 0.025) return value;
    };
    return {
      beyond: law.filter(([value]) => value > reached - 1e-9).reduce((sum, [, share]) => sum + share, 0),
      low: end(law), high: end([...law].reverse()),
    };
  }

  function nats(loss) {
    return loss >= 0.001 ? String(Number(loss.toPrecision(2))) : loss.toExponential(0).replace("-", "−");
  }

  function percent(share) {
    return share < 0.001 ? "fewer than 0.1 %" : `${Number((100 * share).toPrecision(2))} %`;
  }

  // --- drawing ---

  function put(parent, tag, attributes = {}, text = "") {
    const drawn = tag === "svg" || parent.namespaceURI === SVG;
    const element = drawn ? document.createElementNS(SVG, tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text) element.textContent = text;
    parent.append(element);
    return element;
  }

  function middle(sorted) {
    const half = sorted.length / 2;
    return half % 1 ? sorted[Math.floor(half)] : (sorted[half - 1] + sorted[half]) / 2;
  }

  function sheet(parent, width, height, label) {
    return put(parent, "svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  }

  // Losses on a logarithmic axis: those of all other records as bars, of references as dots, of this record as a line.
  function losses(parent, game, one, round, label) {
    const width = Math.min(620, Math.max(260, parent.clientWidth)), floor = round ? 130 : 96, left = 20, right = width - 14;
    const svg = sheet(parent, width, floor + 40, label);
    const { edges, counts } = game.others, ends = [edges[0], edges[edges.length - 1]];
    const at = (power) => left + (right - left) * (power - ends[0]) / (ends[1] - ends[0]);
    const place = (loss) => at(Math.log10(Math.max(loss, game.least)));
    const x = place(one.loss), most = Math.max(...counts), tall = round ? 60 : 74;
    counts.forEach((count, k) => put(svg, "rect", {
      x: at(edges[k]), width: Math.max(1, at(edges[k + 1]) - at(edges[k]) - 1), y: floor - tall * count / most,
      height: tall * count / most, fill: PALE }));
    put(svg, "line", { x1: left, x2: right, y1: floor, y2: floor, stroke: INK });
    for (let power = Math.ceil(ends[0]); power <= ends[1]; power++) {
      put(svg, "line", { x1: at(power), x2: at(power), y1: floor, y2: floor + 5, stroke: INK });
      put(svg, "text", { x: at(power), y: floor + 18, "text-anchor": "middle", fill: INK, "font-size": 12 },
        power >= -2 && power <= 2 ? String(Number((10 ** power).toPrecision(1))) : `1e${power}`.replace("-", "−"));
    }
    put(svg, "text", { x: width / 2, y: floor + 35, "text-anchor": "middle", fill: INK, "font-size": 12 },
      "loss (nats); grey: all other records");
    if (round) {
      put(svg, "line", { x1: left, x2: right, y1: 36, y2: 36, stroke: PALE });
      for (const loss of one.references) {
        put(svg, "circle", { cx: place(loss), cy: 36, r: 6, fill: "#0072b2", "fill-opacity": 0.45, stroke: "#0072b2" });
      }
      const aside = x < width / 2 ? { x: right, "text-anchor": "end" } : { x: left };
      put(svg, "text", { ...aside, y: 58, fill: "#00507d", "font-size": 12 }, "dots: references that never saw it");
    }
    put(svg, "line", { x1: x, x2: x, y1: 16, y2: floor, stroke: "#a33b00", "stroke-width": 3 });
    put(svg, "text", { x, y: 11, fill: "#a33b00", "font-size": 12, "font-weight": "bold",
      "text-anchor": x < 60 ? "start" : x > width - 60 ? "end" : "middle" }, "this record");
  }

  function curves(parent, drawn, sides, label) {
    const size = Math.min(340, Math.max(240, parent.clientWidth)), left = 44, top = 8, room = size - left - 8;
    const svg = sheet(parent, size, size, label), small = { "font-size": 11, fill: INK };
    const x = (wrong) => left + room * wrong / sides[0], y = (right) => top + room * (1 - right / sides[1]);
    for (const part of [0, 0.25, 0.5, 0.75, 1]) {
      put(svg, "line", { x1: left, x2: left + room, y1: y(part * sides[1]), y2: y(part * sides[1]), stroke: "#e4e4e4" });
      put(svg, "text", { ...small, x: x(part * sides[0]), y: top + room + 16, "text-anchor": "middle" }, String(part));
      put(svg, "text", { ...small, x: left - 6, y: y(part * sides[1]) + 4, "text-anchor": "end" }, String(part));
    }
    put(svg, "line", { x1: x(0), y1: y(0), x2: x(sides[0]), y2: y(sides[1]), stroke: FAINT, "stroke-dasharray": "4 3" });
    put(svg, "text", { ...small, x: left + room / 2, y: size - 6, "text-anchor": "middle" }, "false positive rate");
    put(svg, "text", { ...small, x: 12, y: top + room / 2, "text-anchor": "middle",
      transform: `rotate(-90 12 ${top + room / 2})` }, "true positive rate");
    for (const one of drawn) {
      put(svg, "polyline", { points: one.curve.map(([wrong, right]) => `${x(wrong)},${y(right)}`).join(" "), fill: "none",
        stroke: one.color, "stroke-width": 2.5, "stroke-dasharray": one.dash });
    }
  }

  function table(parent, caption, heads, rows) {
    const box = put(parent, "div", { class: "mia-scroll" }), made = put(box, "table", { class: "table" });
    put(made, "caption", {}, caption);
    const head = put(put(made, "thead"), "tr"), body = put(made, "tbody");
    for (const text of heads) put(head, text ? "th" : "td", text ? { scope: "col" } : {}, text);
    for (const cells of rows) {
      const row = put(body, "tr");
      cells.forEach((text, k) => put(row, k ? "td" : "th", k ? {} : { scope: "row" }, text));
    }
    if (box.scrollWidth > box.clientWidth + 1) box.tabIndex = 0;
  }

  // --- the game ---

  function mount(holder) {
    const game = JSON.parse(holder.querySelector("script").textContent);
    const { records } = game, members = records.map((one) => one.member), half = members.filter(Boolean).length;
    holder.replaceChildren(); // with the solutions
    const live = put(holder, "div", { class: "mia-live mia-play" });
    const said = put(holder, "p", { class: "mia-said", role: "status" });
    let guesses;

    function begin(focused) {
      guesses = ROUNDS.map(() => []);
      live.replaceChildren();
      put(live, "p", {}, `${records.length} records are dealt, drawn at random from ${game.of}; half of them are members. ` +
        "You see each twice: first with its loss alone, then beside references. Say how sure you are that the model was " +
        "trained on it. Keys 1 to 5 choose an answer, Enter confirms it.");
      const button = put(live, "button", { type: "button", class: "mia-button" }, "Start");
      button.addEventListener("click", () => ask(0, 0));
      if (focused) button.focus();
    }

    function ask(round, number) {
      const one = records[number], many = one.references.length;
      const below = one.references.filter((loss) => loss > one.loss).length;
      live.replaceChildren();
      const form = put(live, "form"), head = put(form, "div", { class: "mia-play-record" });
      if (one.picture) put(head, "img", { src: one.picture, alt: `Record ${number + 1}, of class ${one.class}`, width: 112 });
      const words = put(head, "div", { id: "mia-play-seen" });
      put(words, "p", { class: "mia-play-round" }, `Round ${round + 1} of ${ROUNDS.length}: ${ROUNDS[round]}`);
      put(words, "p", {}, `Record ${number + 1} of ${records.length}, class ${one.class}. Its loss is ${nats(one.loss)}, ` +
        `below that of ${percent(one.above)} of all other records.`);
      if (round) {
        put(words, "p", {}, `${many} references that never saw it have losses from ${nats(one.references[0])} to ` +
          `${nats(one.references[many - 1])}, in the middle ${nats(middle(one.references))}. ` +
          `Its own loss is below ${below} of them.`);
      }
      losses(form, game, one, round,
        `The loss of record ${number + 1} on an axis of losses${round ? ", with those of references" : ""}`);
      const answers = put(form, "fieldset", { class: "mia-answers", "aria-describedby": "mia-play-seen" });
      put(answers, "legend", {}, `Was record ${number + 1} in the training set?`);
      SURE.forEach((text, k) => {
        const label = put(answers, "label");
        put(label, "input", { type: "radio", name: "sure", value: k + 1, required: "" });
        put(label, "span", {}, `${k + 1} ${text}`);
      });
      put(form, "button", { type: "submit", class: "mia-button" },
        number + 1 < records.length ? "Next record" : round + 1 < ROUNDS.length ? "To the second round" : "Show the solution");
      form.addEventListener("keydown", (event) => {
        const chosen = form.querySelector(`input[value="${event.key}"]`);
        if (!chosen || event.ctrlKey || event.altKey || event.metaKey) return;
        chosen.checked = true;
        chosen.focus();
      });
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        guesses[round].push(Number(new FormData(form).get("sure")));
        if (number + 1 < records.length) ask(round, number + 1);
        else if (round + 1 < ROUNDS.length) ask(round + 1, 0);
        else solve();
      });
      form.querySelector("input").focus({ preventScroll: number > 0 || round > 0 });
    }

    function solve() {
      const names = game.attacks.map((attack) => attack.name);
      const places = names.map((name) => records.map((one) => one.places[name]));
      const accused = guesses.map((round) => [false, true].map(
        (kind) => round.filter((sure, i) => sure > 3 && members[i] === kind).length));
      const wrong = accused[accused.length - 1][0];
      const rows = [...guesses.map((round, k) => ({
        name: `You, round ${k + 1}`, auc: auc(round, members), whole: null, called: accused[k], curve: roc(round, members),
        color: k ? INK : FAINT, dash: k ? "none" : "2 3" })),
      ...names.map((name, k) => ({
        name, auc: auc(places[k], members), whole: game.attacks[k].auc, called: found(places[k], members, wrong),
        curve: roc(places[k], members), color: game.attacks[k].color, dash: ["7 3", "none", "1 2"][k % 3] }))];
      live.replaceChildren();
      const title = put(live, "p", { class: "mia-play-title", tabindex: -1 }, "Your guesses beside the attacks");
      const both = put(live, "div", { class: "mia-play-curves" }), left = put(both, "div");
      const key = put(both, "ul", { class: "mia-play-key" });
      curves(left, rows, [members.length - half, half],
        `ROC curves on these records. ${rows.map((row) => `${row.name}: AUC ${row.auc.toFixed(2)}`).join(". ")}`);
      for (const row of rows) {
        const item = put(key, "li");
        const line = put(item, "svg", { width: 34, height: 10, viewBox: "0 0 34 10", "aria-hidden": "true" });
        const look = { stroke: row.color, "stroke-width": 2.5, "stroke-dasharray": row.dash };
        put(line, "line", { x1: 1, x2: 33, y1: 5, y2: 5, ...look });
        put(item, "span", {}, row.name);
      }
      table(live, "Accused: whom you called a member, probably or surely. An attack accuses as many as it can with no more " +
        "wrong than you had in the second round.",
      ["", "AUC here", "rightly accused", "wrongly accused", `AUC on all ${game.of}`],
      rows.map((row) => [row.name, row.auc.toFixed(2), `${row.called[1]} of ${half}`,
        `${row.called[0]} of ${members.length - half}`, row.whole === null ? "–" : row.whole.toFixed(2)]));
      const last = guesses[guesses.length - 1], law = chance(last, members);
      put(live, "p", { class: "mia-play-chance" }, `How little this says: were ${half} of these ${records.length} records ` +
        `called members by lot, your answers of the second round would reach an AUC of ${auc(last, members).toFixed(2)} in ` +
        `${percent(law.beyond)} of all draws, and one from ${law.low.toFixed(2)} to ${law.high.toFixed(2)} in 95 % of them. ` +
        "Within that, answers show no knowledge. Nor do so few records tell two attacks apart: compare their AUCs here with " +
        "those on all records.");
      table(live, "Record by record, in the order of play. An attack's place: 1 is most likely a member.",
        ["record", "class", "loss", "you, round 1", "you, round 2", "it was", ...names],
        records.map((one, i) => [String(i + 1), one.class, nats(one.loss), ...guesses.map((round) => SURE[round[i] - 1]),
          one.member ? "a member" : "no member",
          ...places.map((values) => String(1 + values.filter((value) => value > values[i]).length))]));
      put(live, "button", { type: "button", class: "mia-button" }, "Play again").addEventListener("click", () => begin(true));
      title.focus();
      said.textContent = `The solution. ${rows.map((row) => `${row.name}: AUC ${row.auc.toFixed(2)}`).join(". ")}.`;
    }

    begin(false);
  }

  document.querySelectorAll(".mia-game").forEach(mount);
})();
