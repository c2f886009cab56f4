(() => {
  "use strict";
  const root = document.documentElement;
  const darkSystem = matchMedia("(prefers-color-scheme: dark)");
  const isTouch = matchMedia("(pointer: coarse)").matches;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const hidden = new Set();

  // Colors: figures name them, the page's variables define them.
  const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  const makePalette = () => {
    const style = getComputedStyle(root);
    return (name) => rgb(style.getPropertyValue("--" + name).trim());
  };
  const ramp = (color, share) => {
    const place = Math.min(3.9999, Math.max(0, share * 4));
    const [low, high] = [color("seq" + Math.floor(place)), color("seq" + (Math.floor(place) + 1))];
    return low.map((x, i) => Math.round(x + (place % 1) * (high[i] - x)));
  };
  const resolve = (color, value) => {
    if (typeof value === "string") {
      const found = /^@([a-z]+\d?)(?::([\d.]+))?$/.exec(value);
      if (!found) return value;
      if (found[1] === "seq") return `rgb(${ramp(color, +found[2])})`;
      const parts = color(found[1]);
      return found[2] === undefined ? `rgb(${parts})` : `rgba(${parts},${found[2]})`;
    }
    if (Array.isArray(value)) {
      // Numbers alone are many, and have no colors; a color scale has both.
      const plain = typeof value[0] === "number" && typeof value.at(-1) === "number";
      return plain ? value : value.map((x) => resolve(color, x));
    }
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([k, x]) => [k, resolve(color, x)]));
    }
    return value;
  };

  const draw = (element) => {
    const figure = resolve(makePalette(), figures[element.dataset.figure]);
    for (const trace of figure.data) {
      if (trace.legendgroup) trace.visible = !hidden.has(trace.legendgroup);
    }
    // A finger on a figure scrolls the page.
    if (isTouch) figure.layout.dragmode = false;
    const waiting = element.querySelector(".waiting");
    if (waiting) waiting.remove();
    return Plotly.react(element, figure.data, figure.layout, {
      responsive: true,
      displaylogo: false,
      displayModeBar: isTouch ? false : "hover",
      // No others: some of them talk to a server.
      modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
    });
  };
  const plots = () => [...document.querySelectorAll("[data-figure]")];
  const drawAll = async () => {
    for (const element of plots()) await draw(element);
  };

  // The library is packed: a third of its size.
  const unpack = async () => {
    const text = document.getElementById("library").textContent;
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  };
  const start = async () => {
    try {
      await unpack();
      await drawAll();
      root.dataset.drawn = "true";
    } catch (error) {
      for (const waiting of document.querySelectorAll(".waiting")) {
        waiting.textContent = "This browser is too old to draw the figure.";
      }
      console.error(error);
    }
  };

  // Theme: the system's, until the button is used.
  const theme = document.getElementById("theme");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : darkSystem.matches);
  const tellTheme = () => {
    theme.setAttribute("aria-label", isDark() ? "Switch to light colors" : "Switch to dark colors");
    theme.title = theme.getAttribute("aria-label");
    theme.firstElementChild.textContent = isDark() ? "\u2600" : "\u263e";
  };
  const redraw = () => {
    tellTheme();
    if (root.dataset.drawn) drawAll();
  };
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("taynode-theme", root.dataset.theme);
    } catch (error) {}
    redraw();
  });
  darkSystem.addEventListener("change", redraw);

  // One legend for all figures: every copy of a button shows the same.
  const buttons = [...document.querySelectorAll(".legend button")];
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const group = button.dataset.group;
      if (!hidden.delete(group)) hidden.add(group);
      for (const other of buttons) {
        if (other.dataset.group === group) other.setAttribute("aria-pressed", String(!hidden.has(group)));
      }
      if (root.dataset.drawn) drawAll();
    });
  }

  // Sorting: numbers as numbers, what is missing always last.
  const order = (a, b) => {
    const [x, y] = [Number(a), Number(b)];
    return isNaN(x) || isNaN(y) ? a.localeCompare(b, undefined, { numeric: true }) : x - y;
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      head.querySelector("button").addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = (row) => row.cells[column].dataset.value;
        const rows = [...table.tBodies[0].rows].sort((r, s) => {
          const [a, b] = [key(r), key(s)];
          if (a === "" || b === "") return (a === "") - (b === "");
          return (down ? -1 : 1) * order(a, b);
        });
        table.tBodies[0].append(...rows);
      });
    });
  }

  for (const button of document.querySelectorAll(".copy")) {
    button.addEventListener("click", async () => {
      const code = button.closest(".command").querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch (error) {
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
  }

  // Picking: a point of a figure, or its row in a table, shows its card.
  const picker = document.querySelector("[data-picks]");
  const choices = [...document.querySelectorAll("input[name=pick]")];
  const pick = (id) => {
    for (const choice of choices) choice.checked = choice.value === id;
    for (const card of document.querySelectorAll("[data-card]")) card.hidden = card.dataset.card !== id;
    const traces = figures[picker.dataset.figure].data;
    const ring = traces.at(-1);
    [ring.x, ring.y] = [[], []];
    for (const trace of traces) {
      const place = trace.ids ? trace.ids.indexOf(id) : -1;
      if (place >= 0) [ring.x, ring.y] = [[trace.x[place]], [trace.y[place]]];
    }
    if (root.dataset.drawn) draw(picker);
  };
  const startPicking = async () => {
    pick(choices.find((choice) => choice.checked).value);
    for (const choice of choices) choice.addEventListener("change", () => pick(choice.value));
    await start();
    if (root.dataset.drawn) picker.on("plotly_click", (event) => pick(event.points[0].id));
  };

  tellTheme();
  if (picker) startPicking();
  else start();
})();
