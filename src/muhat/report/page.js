"use strict";
(() => {
  const root = document.documentElement;
  const all = (what, where = document) => [...where.querySelectorAll(what)];
  const made = (tag, text = "", kind = "") => Object.assign(document.createElement(tag), { textContent: text, className: kind });
  const say = (text) => { document.getElementById("said").textContent = text; };

  // Light and dark.
  const theme = document.getElementById("theme");
  const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const name = () => { theme.textContent = isDark() ? "Light page" : "Dark page"; };
  theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; name(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
  name();
  theme.hidden = false;

  // Series that share a key are switched on and off together, on the whole page.
  const off = new Set();
  const redraw = [];
  for (const button of all(".switch")) {
    button.addEventListener("click", () => {
      const key = button.dataset.key;
      if (!off.delete(key)) off.add(key);
      for (const each of all(".switch")) if (each.dataset.key === key) each.setAttribute("aria-pressed", String(!off.has(key)));
      for (const each of all(".series")) if (each.dataset.key === key) each.classList.toggle("off", off.has(key));
      redraw.forEach((again) => again());
      say(button.textContent + (off.has(key) ? " hidden" : " shown"));
    });
  }

  // Values are read off a plot with the pointer, or with the keyboard on its slider.
  for (const figure of all("figure.plot")) {
    const source = figure.querySelector('script[type="application/json"]');
    if (!source) continue;
    const data = JSON.parse(source.textContent);
    const [area, cross, tip, reader] = [".area", ".cross", ".tip", ".reader"].map((what) => figure.querySelector(what));
    let stops = [];

    const nearest = (points, x) => points.reduce((best, each) => (Math.abs(each[0] - x) < Math.abs(best[0] - x) ? each : best));
    const collect = () => {
      const shown = data.series.filter((series) => !off.has(series.key));
      const inside = (point) => point[0] >= 0 && point[0] <= 1000;
      if (data.byPoint) {
        stops = shown.flatMap((series) => series.points.filter(inside).map((point) => ({ x: point[0], y: point[1], items: [[series, point]] })));
        stops.sort((a, b) => a.x - b.x);
      } else {
        const places = [...new Set(shown.flatMap((series) => series.points.filter(inside).map((point) => Math.round(point[0] / 5) * 5)))].sort((a, b) => a - b);
        stops = places.map((x) => ({
          x, y: null,
          items: shown.map((series) => [series, nearest(series.points, x)]).filter(([, point]) => Math.abs(point[0] - x) <= 12),
        }));
      }
      reader.max = Math.max(0, stops.length - 1);
      reader.disabled = stops.length === 0;
      describe();
      hide();
    };
    const words = (stop) => stop.items.map(([series, point]) => `${series.name}: ${point[2]}`).join("; ");
    const describe = () => {
      const stop = stops[reader.value];
      reader.setAttribute("aria-valuetext", stop ? words(stop) : "nothing is shown");
    };
    const hide = () => { tip.hidden = cross.hidden = true; };
    const show = (stop) => {
      tip.replaceChildren(...stop.items.slice(0, 10).map(([series, point]) => {
        const line = made("p");
        const dot = made("i");
        dot.style.setProperty("--own", series.colour);
        line.append(dot, made("b", series.name), " " + point[2]);
        return line;
      }));
      cross.style.left = stop.x / 10 + "%";
      tip.style.left = stop.x > 500 ? "auto" : `calc(${stop.x / 10}% + .7rem)`;
      tip.style.right = stop.x > 500 ? `calc(${100 - stop.x / 10}% + .7rem)` : "auto";
      tip.hidden = cross.hidden = false;
    };
    const read = () => { describe(); if (stops[reader.value]) show(stops[reader.value]); };
    const point = (event) => {
      if (!stops.length) return;
      const box = area.getBoundingClientRect();
      const [x, y] = [(event.clientX - box.left) / box.width * 1000, (event.clientY - box.top) / box.height * 1000];
      const far = (stop) => (stop.x - x) ** 2 + (data.byPoint ? (stop.y - y) ** 2 : 0);
      const place = stops.reduce((best, stop, index) => (far(stop) < far(stops[best]) ? index : best), 0);
      reader.value = place;
      read();
    };
    area.addEventListener("pointermove", point);
    area.addEventListener("pointerdown", point);
    area.addEventListener("pointerleave", hide);
    reader.addEventListener("input", read);
    reader.addEventListener("focus", read);
    reader.addEventListener("blur", hide);
    addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
    redraw.push(collect);
    reader.value = 0;
    collect();
  }

  // A table is sorted by the column whose title is pressed.
  for (const table of all("table[data-sortable]")) {
    const body = table.tBodies[0];
    const value = (row, column) => {
      const cell = row.cells[column];
      return "value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent.trim().toLowerCase();
    };
    all("thead th", table).forEach((title, column) => {
      if (!title.textContent.trim() || body.rows[0].cells[column].querySelector(".spark")) return;
      const button = made("button");
      button.type = "button";
      button.append(...title.childNodes);
      title.append(button);
      title.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const up = title.getAttribute("aria-sort") !== "ascending";
        for (const each of all("thead th[aria-sort]", table)) each.setAttribute("aria-sort", "none");
        title.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = [...body.rows].map((row) => [value(row, column), row]);
        rows.sort(([a], [b]) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b))) * (up ? 1 : -1));
        body.append(...rows.map(([, row]) => row));
        say(`Sorted by ${button.textContent}, ${up ? "ascending" : "descending"}`);
      });
    });
  }

  // The lines of Python, to the clipboard.
  const copy = document.getElementById("copy");
  const code = document.querySelector("#code code");
  if (code) {
    copy.hidden = false;
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
      } catch {
        const range = document.createRange();
        range.selectNodeContents(code);
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        document.execCommand("copy");
      }
      copy.textContent = "Copied";
      say("Copied");
      setTimeout(() => { copy.textContent = "Copy"; }, 1500);
    });
  }
})();
