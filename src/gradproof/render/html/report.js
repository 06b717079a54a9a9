// Opening, sorting, filtering, theme, copying. Content is made by Python; nothing here writes markup.
(() => {
  "use strict";

  const byId = (id) => document.getElementById(id);
  const table = byId("programs");
  const programs = [...table.tBodies];
  const opener = (program) => program.querySelector(".opener");

  // Opening a program; its plots are drawn when they come into view.
  const toggle = (program, open) => {
    const button = opener(program);
    const wanted = open ?? button.getAttribute("aria-expanded") !== "true";
    button.setAttribute("aria-expanded", String(wanted));
    program.querySelector("tr.more").hidden = !wanted;
    if (wanted) window.gradproofPlots.watch(program);
  };

  table.addEventListener("click", (event) => {
    const row = event.target.closest("tr.row");
    // A click that ends a selection of text is meant for the text.
    if (row && !(window.getSelection() ?? "").toString()) toggle(row.parentElement);
  });

  const openLinked = () => {
    const program = /^#p\d+$/.test(location.hash) ? byId(location.hash.slice(1)) : null;
    if (program) {
      toggle(program, true);
      program.scrollIntoView();
    }
  };
  window.addEventListener("hashchange", openLinked);

  // Sorting.
  const number = (text) => (text === "inf" ? Infinity : Number(text));
  const keys = {
    verdict: (program) => number(program.dataset.rank),
    name: (program) => opener(program).textContent.toLowerCase(),
    excess: (program) => number(program.dataset.excess),
    calls: (program) => number(program.dataset.calls),
    seconds: (program) => number(program.dataset.seconds),
  };
  // What a first click shows at the top: the loudest verdict (rank 0), the first name, the largest number.
  const first = { verdict: "ascending", name: "ascending" };

  const sort = (head) => {
    const key = head.querySelector("button").dataset.key;
    const now = head.getAttribute("aria-sort");
    const opposite = { ascending: "descending", descending: "ascending" };
    const direction = opposite[now] ?? first[key] ?? "descending";
    for (const other of table.tHead.querySelectorAll("[aria-sort]")) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", direction);
    const sign = direction === "ascending" ? 1 : -1;
    const valued = programs.map((program, index) => ({ program, index, value: keys[key](program) }));
    valued.sort((a, b) => {
      if (a.value === b.value) return a.index - b.index;
      return sign * (a.value < b.value ? -1 : 1);
    });
    table.append(...valued.map((one) => one.program));
  };

  table.tHead.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) sort(button.closest("th"));
  });

  // Filtering.
  const buttons = [...document.querySelectorAll("button.verdict")];
  const finding = byId("finding");
  const text = byId("text");
  const texts = new Map();
  const textOf = (program) => {
    if (!texts.has(program)) {
      const parts = [...program.querySelectorAll(".opener, .what, .findings, .entries, .blocks, .facts")];
      texts.set(program, parts.map((part) => part.textContent).join(" ").toLowerCase());
    }
    return texts.get(program);
  };

  const filter = () => {
    const verdicts = buttons.filter((one) => one.getAttribute("aria-pressed") === "true").map((one) => one.dataset.verdict);
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const program of programs) {
      const fits =
        (!verdicts.length || verdicts.includes(program.dataset.verdict)) &&
        (!finding.value || program.dataset.codes.split(" ").includes(finding.value)) &&
        words.every((word) => textOf(program).includes(word));
      program.hidden = !fits;
      count += fits;
    }
    const total = programs.length.toLocaleString("en");
    byId("shown").textContent = count === programs.length ? `${total} shown` : `${count.toLocaleString("en")} of ${total} shown`;
    byId("none").hidden = count > 0 || !programs.length;
  };

  for (const button of buttons) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      filter();
    });
  }
  finding.addEventListener("change", filter);
  let waiting;
  text.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(filter, 120);
  });
  byId("reset").addEventListener("click", () => {
    for (const button of buttons) button.setAttribute("aria-pressed", "false");
    finding.value = "";
    text.value = "";
    filter();
    text.focus();
  });

  // Theme: as the system says, or chosen and remembered where the browser allows it.
  const themes = ["auto", "light", "dark"];
  const button = byId("theme");
  let theme = "auto";
  const show = (wanted) => {
    theme = themes.includes(wanted) ? wanted : "auto";
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
    window.gradproofPlots.redraw();
  };
  const remembered = () => {
    try {
      return localStorage.getItem("gradproof-theme");
    } catch {
      return null; // storage may be switched off for files
    }
  };
  button.addEventListener("click", () => {
    show(themes[(themes.indexOf(theme) + 1) % themes.length]);
    try {
      localStorage.setItem("gradproof-theme", theme);
    } catch {
      // the same
    }
  });
  for (const query of ["(prefers-color-scheme: dark)", "print"]) {
    matchMedia(query).addEventListener("change", () => window.gradproofPlots.redraw());
  }

  // Copying a command.
  const copy = async (source) => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      return true;
    } catch {
      getSelection().selectAllChildren(source); // no permission: leave it selected for the keyboard
      return false;
    }
  };
  document.addEventListener("click", async (event) => {
    const asked = event.target.closest("button.copy");
    if (!asked) return;
    asked.textContent = (await copy(asked.parentElement.querySelector("code"))) ? "Copied" : "Selected";
    setTimeout(() => (asked.textContent = "Copy"), 1500);
  });

  show(remembered());
  filter();
  if (programs.length === 1) toggle(programs[0], true);
  openLinked();
})();
