// Heat maps, step ladders and Taylor remainders, drawn by plotly when they come into view.
(() => {
  "use strict";

  const LOWEST = -4; // powers of ten, in tolerances, at the ends of the colour scale
  const HIGHEST = 4;

  // Plotly waits in the page as text until the first plot is wanted: most readers never need to pay for it.
  const plotly = () => {
    if (!window.Plotly) {
      const script = document.createElement("script");
      script.textContent = document.getElementById("plotly").textContent;
      document.head.append(script);
    }
    return window.Plotly;
  };

  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  const colour = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const isDark = () => {
    const [red, green, blue] = colour("page").match(/[\d.]+/g).map(Number);
    return red + green + blue < 384;
  };
  const scale = () =>
    isDark()
      ? [[0, "#262d35"], [0.3, "#25425a"], [0.4999, "#3a78a6"], [0.5, "#c99a2e"], [0.7, "#e8743b"], [1, "#ff6b63"]]
      : [[0, "#f0f3f5"], [0.3, "#c3d8e8"], [0.4999, "#7aaed6"], [0.5, "#f3c14f"], [0.7, "#dd5f2c"], [1, "#860d1a"]];

  // Plotly reads a little markup in its labels; names are text.
  const plain = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const value = (one) => (one === "inf" ? Infinity : one === "-inf" ? -Infinity : one === null ? NaN : one);
  const at = (list, tile) => value(list.length === 1 ? list[0] : list[tile]);
  const said = (number) => {
    const small = number !== 0 && Math.abs(number) < 1e-3;
    return (small ? number.toExponential() : String(number)).replace("Infinity", "∞").replaceAll("-", "−").replace("e+", "e");
  };
  const grouped = (number) => number.toLocaleString("en");

  const index = (offset, shape, isComplex) => {
    let left = isComplex ? Math.floor(offset / 2) : offset;
    const place = [];
    for (const size of [...shape].reverse()) {
      place.unshift(left % size);
      left = Math.floor(left / size);
    }
    const part = isComplex ? (offset % 2 ? ".imag" : ".real") : "";
    return (place.length ? `[${place.join(", ")}]` : "") + part;
  };
  const spot = ([path, shape, isComplex], offset) => path + index(offset, shape, isComplex);

  const layout = (more) => ({
    margin: { l: 64, r: 12, t: 10, b: 46 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("soft") },
    hoverlabel: { bgcolor: colour("sheet"), bordercolor: colour("line"), font: { family: getComputedStyle(document.body).fontFamily, color: colour("ink"), size: 13 }, align: "left" },
    ...more,
  });
  const config = { displayModeBar: false, displaylogo: false, responsive: true };

  // What one tile stands for, line by line.
  const entry = (block, tile) => {
    const columns = block.shape[1];
    const offset = block.offset.length ? block.offset[tile] : tile;
    const [row, column] = [Math.floor(offset / columns), offset % columns];
    const analytic = at(block.analytic, tile);
    const numeric = block.numeric[tile] === 0 ? analytic : value(block.numeric[tile][0]);
    const [excess, bar, tolerance] = [at(block.excess, tile), at(block.bar, tile), at(block.tolerance, tile)];
    const place = block.scope === "probes" ? `probe ${offset}` : `d ${spot(block.output, row)} / d ${spot(block.input, column)}`;
    const lines = [
      `analytic ${said(analytic)}`,
      `numeric ${said(numeric)} ± ${said(bar)}`,
      `${excess >= 100 && excess < 1e9 ? grouped(Math.round(excess)) : said(excess)} tolerances (of ${said(tolerance)})`,
    ];
    if (bar > tolerance) lines.push("the error bar is wider than the tolerance");
    return { place, lines, excess };
  };

  const summary = (block) => {
    const tiles = block.excess.length;
    const whole = !block.offset.length;
    let worst = 0;
    let beyond = 0;
    for (let tile = 0; tile < tiles; tile++) {
      const excess = at(block.excess, tile);
      if (excess > at(block.excess, worst)) worst = tile;
      beyond += excess > 1;
    }
    const [rows, columns] = block.shape.map(grouped);
    const size = block.scope === "probes" ? `${columns} probes` : `${rows} × ${columns} entries`;
    const reduced = whole ? "" : ` in ${block.grid[0]} × ${block.grid[1]} tiles, each showing its worst entry`;
    const { place, lines } = entry(block, worst);
    const many = beyond ? `${grouped(beyond)} beyond the tolerance` : "none beyond the tolerance";
    return `${size}${reduced}; ${many}. The largest deviation is at ${place}: ${lines.join(", ")}.`;
  };

  const ticks = (count, total, leaf, most = 8) => {
    const every = Math.max(1, Math.ceil(count / most));
    const values = [...Array(count).keys()].filter((tile) => tile % every === 0);
    const texts = values.map((tile) => plain(index(Math.floor((total * tile) / count), leaf[1], leaf[2]) || "·"));
    return { tickmode: "array", tickvals: values, ticktext: texts, showgrid: false, zeroline: false, ticks: "" };
  };

  const drawHeat = (figure, block) => {
    const target = figure.querySelector(".plot");
    const [rows, columns] = block.grid;
    const z = [];
    const text = [];
    for (let row = 0; row < rows; row++) {
      const tiles = [...Array(columns).keys()].map((column) => row * columns + column);
      z.push(tiles.map((tile) => Math.min(Math.max(Math.log10(at(block.excess, tile)), LOWEST), HIGHEST)));
      text.push(tiles.map((tile) => {
        const { place, lines } = entry(block, tile);
        return [`<b>${plain(place)}</b>`, ...lines.map(plain)].join("<br>");
      }));
    }
    const words = summary(block);
    figure.querySelector(".says").textContent = words;
    target.setAttribute("aria-label", `Heat map: ${words} Use the arrow keys to move over it.`);
    const height = Math.min(Math.max(rows * 20, 130), 380) + 80;
    target.style.maxWidth = `${Math.max(420, columns * 48 + 180)}px`;
    const gap = rows * columns <= 1024 ? 1 : 0;
    const probes = block.scope === "probes";
    plotly().react(
      target,
      [{
        type: "heatmap", z, text, zmin: LOWEST, zmax: HIGHEST, colorscale: scale(), xgap: gap, ygap: gap,
        hovertemplate: "%{text}<extra></extra>",
        colorbar: {
          tickvals: [-4, -2, 0, 2, 4], ticktext: ["≤ 10⁻⁴", "10⁻²", "1", "10²", "≥ 10⁴"], title: { text: "tolerances", side: "right" },
          outlinewidth: 0, thickness: 12, ticks: "", len: 1,
        },
      }],
      layout({
        height,
        margin: { l: 70, r: 12, t: 8, b: 52 },
        xaxis: { ...ticks(columns, block.shape[1], probes ? ["", [block.shape[1]], 0] : block.input, target.clientWidth < 500 ? 4 : 8), automargin: true, title: { text: plain(probes ? "probe" : block.input[0]), standoff: 8 } },
        yaxis: { ...(probes ? { showticklabels: false, showgrid: false, zeroline: false } : ticks(rows, block.shape[0], block.output)), autorange: "reversed", title: { text: plain(probes ? "" : block.output[0]), standoff: 8 } },
      }),
      config,
    );
    target.gradproofBlock = block;
  };

  // The keyboard's hover: arrow keys move over the tiles, and the sentence below says what is there.
  const steer = (figure, event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const target = figure.querySelector(".plot");
    const block = target.gradproofBlock;
    if (!move || !block) return;
    event.preventDefault();
    const [row, column] = target.gradproofCursor ?? [-move[0], -move[1]].map((step) => Math.min(step, 0));
    const next = [
      Math.min(Math.max(row + move[0], 0), block.grid[0] - 1),
      Math.min(Math.max(column + move[1], 0), block.grid[1] - 1),
    ];
    target.gradproofCursor = next;
    plotly().Fx.hover(target, { xval: next[1], yval: next[0] }, "xy");
    const { place, lines } = entry(block, next[0] * block.grid[1] + next[1]);
    figure.querySelector(".says").textContent = `${place}: ${lines.join(", ")}`;
  };

  // A log axis has no zero: what is exactly zero is drawn below everything else.
  const positive = (list, others = []) => {
    const known = list.map(value);
    const least = Math.min(...[...known, ...others].filter((one) => one > 0 && Number.isFinite(one)));
    return known.map((one) => (one === 0 ? (Number.isFinite(least) ? least / 10 : null) : Number.isFinite(one) ? one : null));
  };
  const line = (x, y, name, dash, tint) => ({
    x, y, name, mode: "lines", line: { dash, width: 1.5, color: tint }, hovertemplate: `${name}: %{y:.3g}<extra></extra>`,
  });
  const dots = (x, y, name, tint, more) => ({
    x, y, name, mode: "lines+markers", marker: { size: 6, color: tint }, line: { width: 1.5, color: tint }, connectgaps: false,
    hovertemplate: `${name}: %{y:.3g}<br>step %{x:.2g}<extra></extra>`, ...more,
  });
  const axis = (title, more) => ({
    type: "log", title: { text: title, standoff: 8 }, exponentformat: "power", dtick: 2, tickfont: { size: 11 }, gridcolor: colour("line"), zeroline: false, ...more,
  });
  const kinks = (trace) => {
    const near = trace.kinks.filter((distance) => distance > 0);
    const tint = colour("undecided");
    return {
      shapes: near.map((x) => ({ type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line: { dash: "dot", width: 1.5, color: tint } })),
      annotations: [
        ...near.map((x) => ({ x: Math.log10(x), yref: "paper", y: 1, yanchor: "bottom", text: "kink", showarrow: false, font: { color: tint } })),
        ...(trace.kinks.includes(0) ? [{ xref: "paper", x: 0, xanchor: "left", yref: "paper", y: 1, yanchor: "bottom", text: "kink at the point", showarrow: false, font: { color: tint } }] : []),
      ],
    };
  };
  const curves = (title, trace, y) =>
    layout({
      height: 320,
      hovermode: "closest",
      legend: { orientation: "h", y: -0.24, x: 0, font: { size: 12 } },
      margin: { l: 64, r: 12, t: 24, b: 90 },
      xaxis: axis("step"),
      yaxis: axis(title, y),
      ...kinks(trace),
    });

  const drawLadder = (figure, trace) => {
    const ends = [trace.steps[0], trace.steps.at(-1)];
    const bars = trace.bars.map(value);
    const errors = positive(trace.errors, bars);
    const against = trace.analytic === null || typeof trace.analytic === "string" ? "numeric" : "analytic";
    const bar = {
      type: "data", symmetric: false, array: bars.map((one) => (Number.isFinite(one) ? one : 0)),
      arrayminus: bars.map((one, k) => Math.min(one, 0.8 * (errors[k] ?? 0)) || 0), thickness: 1, width: 2, color: colour("soft"),
    };
    const series = [dots(trace.steps, errors, `|slope − ${against}|`, colour("link"), { error_y: bar })];
    if (trace.kinks.length) {
      series.push(dots(trace.steps, positive(trace.right), "from the right", colour("undecided"), { mode: "lines" }));
      series.push(dots(trace.steps, positive(trace.left), "from the left", colour("error"), { mode: "lines" }));
    }
    series.push(line(ends, [trace.tolerance, trace.tolerance], "tolerance", "dash", colour("wrong")));
    if (trace.spread > 0) series.push(line(ends, [trace.spread, trace.spread], "kink's half-width", "dashdot", colour("undecided")));
    plotly().react(figure.querySelector(".plot"), series, curves("error of the slope", trace), config);
  };

  const drawTaylor = (figure, trace) => {
    const left = positive(trace.remainders);
    const steps = trace.steps;
    // Both reference lines pass through the remainder well below the largest step, where Taylor's formula holds.
    let anchor = steps.findLastIndex((step, k) => step * 1024 <= steps.at(-1) && left[k] > 30 * trace.rounding);
    if (anchor < 0) anchor = steps.length - 1;
    const through = (power) => steps.map((step) => left[anchor] * (step / steps[anchor]) ** power);
    const series = [dots(steps, left, "remainder", colour("link"))];
    if (left[anchor] > 0) {
      series.push(line(steps, through(1), "slope 1 (wrong)", "dash", colour("wrong")));
      series.push(line(steps, through(2), "slope 2 (right)", "dash", colour("right")));
    }
    if (trace.rounding > 0) series.push(line([steps[0], steps.at(-1)], [trace.rounding, trace.rounding], "rounding", "dot", colour("soft")));
    const known = [...left.filter((one) => one > 0), trace.rounding].filter((one) => one > 0);
    const range = [Math.log10(Math.min(...known)) - 1, Math.log10(Math.max(...known)) + 1];
    const y = known.length ? { range, dtick: 4 } : {};
    plotly().react(figure.querySelector(".plot"), series, curves("remainder", trace, y), config);
  };

  const drawn = new Set();
  let lines = null; // one for each program, parsed when it is wanted
  const numbers = (figure) => {
    lines ??= document.getElementById("numbers").textContent.split("\n");
    return JSON.parse(lines[Number(figure.closest(".plots").dataset.program)]);
  };
  const draw = (figure) => {
    const target = figure.querySelector(".plot");
    if (target.classList.contains("heat")) drawHeat(figure, numbers(figure).blocks[Number(figure.querySelector("select").value)]);
    else (target.classList.contains("ladder") ? drawLadder : drawTaylor)(figure, numbers(figure).traces[Number(target.dataset.trace)]);
    drawn.add(figure);
  };

  const seen = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) {
        seen.unobserve(target);
        draw(target);
      }
    }
  }, { rootMargin: "200px" });

  const watch = (program) => {
    for (const figure of program.querySelectorAll("figure:not([data-watched])")) {
      figure.dataset.watched = "";
      const select = figure.querySelector("select");
      if (select) {
        select.addEventListener("change", () => {
          delete figure.querySelector(".plot").gradproofCursor;
          draw(figure);
        });
        figure.querySelector(".plot").addEventListener("keydown", (event) => steer(figure, event));
      }
      seen.observe(figure);
    }
  };

  window.gradproofPlots = { watch, redraw: () => drawn.forEach(draw) };
})();
