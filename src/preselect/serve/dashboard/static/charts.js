"use strict";
/* The charts of a page: from the columns of /series to uPlot. Colours are those of the style sheet, light or dark. */
const charts = (() => {
  const tones = ["--one", "--two", "--three", "--four", "--five", "--six", "--text", "--seven"];
  const dashes = [[], [6, 3], [2, 2], [8, 3, 2, 3], [], [6, 3], [2, 2], [8, 3, 2, 3]];
  const drawn = new Map();

  const tone = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const line = (label, place, options = {}) =>
    ({ label, stroke: tone(tones[place]), dash: dashes[place], width: 2, spanGaps: true, ...options });

  const edge = (label) => ({ label, class: "edge", stroke: "transparent", spanGaps: true, points: { show: false } });

  /* The sample of a line in the legend: its colour, and its dashes. */
  function sample({ stroke, dash = [] }) {
    if (dash.length === 0) return stroke;
    const edges = dash.map((_, place) => dash.slice(0, place + 1).reduce((sum, one) => sum + one));
    const stops = edges.map((edge, place) => `${place % 2 ? "transparent" : stroke} ${edges[place - 1] || 0}px ${edge}px`);
    return `repeating-linear-gradient(to right, ${stops.join(", ")})`;
  }

  const whole = (value) => (value == null ? "–" : value.toPrecision(3));
  const percent = (value) => (value == null ? "–" : (100 * value).toFixed(1) + " %");

  /* Each chart: which columns, which lines, whether values are shares. */
  const kinds = {
    rates: (all) => ({ columns: [all.rates.at, all.rates.decided, all.rates.told], series: [line("decisions", 0), line("outcomes", 1)] }),
    waiting: (all) => ({
      columns: [all.rates.at, all.rates.waiting_low, all.rates.waiting_high, all.rates.waiting, all.rates.expired],
      series: [edge("least"), edge("most"), line("waiting", 0), line("expired per second", 1)],
      bands: [{ series: [2, 1], fill: tone("--one") + "33" }],
    }),
    effective: (all) => ({
      columns: [all.rates.at, all.rates.effective_low, all.rates.effective_high, all.rates.effective],
      series: [edge("least"), edge("most"), line("effective number of arms", 0)],
      bands: [{ series: [2, 1], fill: tone("--one") + "33" }],
    }),
    first: (all) => ({
      columns: [all.rates.at, all.rates.first, all.rates.expected],
      series: [line("first arm", 0), line("at random", 1)], share: true,
    }),
    chosen: (all) => share(all.shares, all.shares.chosen),
    won: (all) => share(all.shares, all.shares.won),
  };

  /* How times are written: the step of the ticks, the usual form, and what is below the first tick of a year, day or minute. */
  const times = [
    [3600 * 24 * 365, "{YYYY}", null, null, null, null, null, null, 1],
    [3600 * 24 * 28, "{MMM}", "\n{YYYY}", null, null, null, null, null, 1],
    [3600 * 24, "{DD} {MMM}", "\n{YYYY}", null, null, null, null, null, 1],
    [60, "{HH}:{mm}", "\n{DD} {MMM} {YYYY}", null, "\n{DD} {MMM}", null, null, null, 1],
    [1, ":{ss}", "\n{DD} {MMM} {HH}:{mm}", null, "\n{DD} {MMM} {HH}:{mm}", null, "\n{HH}:{mm}", null, 1],
  ];
  const minute = 60, hour = 60 * minute, day = 24 * hour;
  const steps = [1, 2, 5, 10, 15, 30, minute, 2 * minute, 5 * minute, 10 * minute, 15 * minute, 30 * minute, hour, 2 * hour, 3 * hour,
    6 * hour, 12 * hour, day, 2 * day, 3 * day, 7 * day, 14 * day, 28 * day, 91 * day, 182 * day, 365 * day]; // whole seconds, as intervals are
  const universal = (seconds) => uPlot.tzDate(new Date(1000 * seconds), "Etc/UTC");
  const moment = uPlot.fmtDate("{YYYY}-{MM}-{DD} {HH}:{mm}:{ss}");

  const isSparse = (plot) => plot.data[0].length < 10; // points are marked, not only joined

  const share = (shares, values) =>
    ({ columns: [shares.at, ...values], series: values.map((_, place) => line(shares.arms[place], place)), share: true });

  function options(element, kind) {
    const axis = { stroke: tone("--faint"), grid: { stroke: tone("--line"), width: 1 }, ticks: { stroke: tone("--line"), width: 1 } };
    const format = kind.share ? percent : whole;
    return {
      width: element.clientWidth, height: 220, tzDate: universal, bands: kind.bands || [], 
      legend: {
        live: matchMedia("(hover: hover)").matches,
        markers: { width: 0, fill: (plot, place) => (place ? sample(kind.series[place - 1]) : "none") },
      },
      scales: {
        x: { range: (plot, low, high) => (plot.data[0].length === 1 ? [low - 30, low + 30] : [low, high]) },  // a single point is no span
        y: { range: (plot, low, high) => [0, kind.share ? Math.min(1, (high || 1) * 1.1) : (high || 1) * 1.1] },
      },
      axes: [{ ...axis, values: times, incrs: steps }, { ...axis, size: 55, values: (plot, ticks) => ticks.map((value) => (kind.share ? Math.round(100 * value) + " %" : value)) }],
      series: [{ label: "at", value: (plot, value) => (value == null ? "" : moment(universal(value)) + " UTC") }, ...kind.series.map((one) => ({ points: { show: isSparse, fill: tone("--page") }, ...one, value: (plot, value) => (plot.cursor.idx == null ? "" : format(value)) }))],
    };
  }

  function draw(element, all) {
    const kind = kinds[element.dataset.chart](all);
    const isEmpty = !kind.columns.slice(1).some((column) => column && column.some((value) => value != null));
    const names = JSON.stringify(kind.series.map((one) => one.label));
    const before = drawn.get(element);
    if (isEmpty) {
      element.replaceChildren(Object.assign(document.createElement("p"), { className: "empty", textContent: "There is nothing to show yet." }));
    } else if (before && before.names === names) {
      before.plot.setData(kind.columns);
    } else {
      if (before) before.plot.destroy();
      element.replaceChildren();
      drawn.set(element, { names, plot: new uPlot(options(element, kind), kind.columns, element) });
    }
  }

  /* Colours and sizes have changed: begin again. */
  function forget() {
    for (const { plot } of drawn.values()) plot.destroy();
    drawn.clear();
  }

  function resize() {
    for (const [element, { plot }] of drawn) plot.setSize({ width: element.clientWidth, height: 220 });
  }

  return { draw: (all) => document.querySelectorAll("[data-chart]").forEach((element) => draw(element, all)), forget, resize };
})();
