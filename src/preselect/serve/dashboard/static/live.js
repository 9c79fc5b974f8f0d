"use strict";
/* Keeps a page up to date: parts of it come as server-sent events, curves are fetched when something has happened. */
(() => {
  const root = document.querySelector("[data-live]");
  const state = root.querySelector("[data-state]");
  const every = 2000; // milliseconds between two fetches of curves
  let series = null, fetched = 0, wanted = null, source = null;

  function say(live, text) {
    state.dataset.live = live ? "yes" : "no";
    if (state.textContent !== text) state.textContent = text; // else it might be read out at every update
  }

  /* A part that the reader is using stays as it is until the next change. */
  const isUsed = (element) =>
    element.contains(document.activeElement) || element.querySelector("details[open]") ||
    (getSelection().type === "Range" && getSelection().containsNode(element, true));

  function replace(parts) {
    for (const [name, html] of Object.entries(parts)) {
      const element = root.querySelector(`[data-part="${name}"]`);
      if (element && !isUsed(element)) element.innerHTML = html;
    }
  }

  async function fetchSeries() {
    wanted = null;
    fetched = Date.now();
    try {
      const answer = await fetch(root.dataset.series, { headers: { Accept: "application/json" } });
      if (!answer.ok) return;
      series = await answer.json();
      charts.draw(series);
    } catch {
      /* the stream says when the service is back */
    }
  }

  function want() {
    if (wanted === null) wanted = setTimeout(fetchSeries, Math.max(0, fetched + every - Date.now()));
  }

  function connect() {
    source = new EventSource(root.dataset.live);
    source.addEventListener("update", (event) => {
      say(true, "live");
      replace(JSON.parse(event.data).parts);
      want();
    });
    source.addEventListener("error", () => {
      say(false, "connection lost; trying again");
      if (source.readyState === EventSource.CLOSED) setTimeout(connect, 2000);
    });
  }

  function redraw() {
    charts.forget();
    if (series) charts.draw(series);
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("resize", charts.resize);
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", (event) => event.persisted && connect());
  fetchSeries();
  connect();
})();
