// What the picking page draws: dials, bars, reasons and sentences. Text goes in as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

function make(tag, attributes = {}, ...content) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...content);
  return element;
}

function draw(tag, attributes, ...content) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...content);
  return element;
}

const share = (value) => (value > 0 && value < 0.01 ? "under 1 %" : `${Math.round(100 * value)} %`);
const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;

// --- dials: weights with their uncertainty ----------------------------------------------------------------------------

const WIDTH = 200, MIDDLE = WIDTH / 2, HEIGHT = 22, REACH = 94;

// One row for each dial: less, a scale, more. All have the same scale; `truth` adds the true weights.
export function drawDials(list, dials, features, truth) {
  const known = dials.map((dial) => ({ ...dial, ...features[dial.feature], truth: truth?.[dial.feature] }));
  const largest = Math.max(0.6, ...known.map((one) => Math.abs(one.weight) + one.standard_error), ...known.map((one) => Math.abs(one.truth ?? 0)));
  list.replaceChildren(...known.map((one) => drawDial(one, largest)));
}

function drawDial({ less, more, weight, standard_error: error, truth }, largest) {
  const at = (value) => MIDDLE + REACH * Math.max(-1, Math.min(1, value / largest));
  const y = HEIGHT / 2, leans = Math.abs(weight) > 2 * error;
  const shapes = [
    draw("line", { class: "track", x1: MIDDLE - REACH, x2: MIDDLE + REACH, y1: y, y2: y }),
    draw("line", { class: "zero", x1: MIDDLE, x2: MIDDLE, y1: y - 6, y2: y + 6 }),
    draw("line", { class: "range", x1: at(weight - 1.96 * error), x2: at(weight + 1.96 * error), y1: y, y2: y }),
    draw("circle", { class: "dot", cx: at(weight), cy: y, r: 5 }),
  ];
  if (truth !== undefined) {
    const x = at(truth);
    shapes.push(draw("path", { class: "truth", d: `M${x} ${y - 8}L${x + 7} ${y}L${x} ${y + 8}L${x - 7} ${y}Z` }));
  }
  const label = `${more}${less ? ` rather than ${less}` : ""}: ${signed(weight)} ± ${error.toFixed(2)}`;
  const told = truth === undefined ? label : `${label}, truly ${signed(truth)}`;
  return make(
    "li", {},
    make("span", { class: leans && weight < 0 && less ? "less leans" : "less", "aria-hidden": "true" }, less),
    draw("svg", { role: "img", "aria-label": told, viewBox: `0 0 ${WIDTH} ${HEIGHT}` }, ...shapes),
    make("span", { class: leans && weight > 0 ? "more leans" : "more", "aria-hidden": "true" }, more),
  );
}

// --- the past: a bar for each pick ------------------------------------------------------------------------------------

// Chances by the estimates of the time: shares of exp(utility), with 1 for nobody.
function listChances(utilities) {
  const highest = Math.max(0, ...utilities), weights = utilities.map((one) => Math.exp(one - highest));
  const total = weights.reduce((sum, one) => sum + one, Math.exp(-highest));
  return [...weights, Math.exp(-highest)].map((one) => one / total);
}

// Returns how often the favourite of the three was picked, and how often a blind guess would have been right.
export function drawPast(frame, rounds) {
  const bars = rounds.map(({ chosen, utilities, outcome }) => {
    const chances = listChances(utilities), winner = outcome.names[0];
    const place = winner === undefined ? chosen.length : chosen.indexOf(winner);
    return { chance: chances[place], hit: place === utilities.indexOf(Math.max(...utilities)), guess: place < chosen.length ? 1 / 3 : 0 };
  });
  const sum = (list) => list.reduce((total, one) => total + one, 0);
  const found = { hits: bars.filter((bar) => bar.hit).length, guesses: sum(bars.map((bar) => bar.guess)) };
  const count = Math.max(40, bars.length), step = 800 / count, y = (value) => 100 - 96 * value;
  const shapes = bars.map(({ chance, hit }, place) => draw("rect", {
    class: hit ? "hit" : "miss", x: place * step + 1.5, width: step - 3, y: y(chance), height: 100 - y(chance), rx: 2,
  }, draw("title", {}, `Pick ${place + 1}: ${share(chance)}`)));
  const label = `The chance given to each of ${bars.length} picks; on average ${share(sum(bars.map((bar) => bar.chance)) / (bars.length || 1))}`;
  frame.replaceChildren(draw(
    "svg", { role: "img", "aria-label": label, viewBox: "0 0 800 102", preserveAspectRatio: "none" }, ...shapes,
    draw("line", { class: "guess", x1: 0, x2: 800, y1: y(1 / 3), y2: y(1 / 3) }),
    draw("line", { class: "base", x1: 0, x2: 800, y1: 100.5, y2: 100.5 }),
  ));
  return found;
}

// --- sentences --------------------------------------------------------------------------------------------------------

// What there is to say after a pick, as text and elements.
export function say(explanation, winner) {
  const best = Math.max(...explanation.arms.map((arm) => arm.chance));
  if (winner === null) return ["None of them. It had thought so with a chance of ", make("b", {}, share(explanation.nobody)), "."];
  const chance = explanation.arms.find((arm) => arm.name === winner).chance;
  const verdict = chance === best ? "it was its favourite of the three" : "another one was its favourite";
  return ["Picked: ", make("b", {}, winner), ". It had a chance of ", make("b", {}, share(chance)), `, and ${verdict}.`];
}

const ROLES = {
  leader: ["Its favourite", "What it believes you like best, of those you have not just seen."],
  challenger: ["A challenger", "It knows less about this one: you may like it better than it thinks."],
};

// Why each of the three is there, in the order in which they are shown; `posters` says what each looks like.
export function drawReasons(frame, explanation, posters, dials) {
  const arms = new Map(explanation.arms.map((arm) => [arm.name, arm]));
  const items = [...posters].filter(([name]) => arms.has(name)).map(([name, looks]) => describeArm(arms.get(name), looks, dials));
  frame.replaceChildren(
    make("ol", {}, ...items),
    make("p", { class: "note" }, `None of them: ${share(explanation.nobody)}. A share is the chance to be picked; the numbers below it are what `
      + "each feature adds to how much you would like the poster (its log-utility), as far as it knows."),
  );
}

function describeArm(arm, looks, dials) {
  const [title, reason] = ROLES[arm.role] ?? [arm.role, ""];
  const names = new Map(dials.map(({ feature, less, more }) => [feature, less ? `${less} to ${more}` : more]));
  const parts = Object.entries(arm.contributions).sort(([, a], [, b]) => Math.abs(b) - Math.abs(a)).slice(0, 5);
  return make(
    "li", {},
    make("h2", {}, `${title}: ${share(arm.chance)}`),
    make("p", { class: "note" }, looks),
    make("p", {}, reason),
    make("dl", {}, ...parts.flatMap(([name, value]) => [make("dt", {}, names.get(name) ?? "this very poster"), make("dd", {}, signed(value))])),
  );
}
