// The picking page: shows three posters, tells the service which one was picked, and draws what it has learnt.
// All that is known is in the service: the page may be loaded again at any time.

import { Preselector, read } from "./service.js";
import { drawDials, drawPast, drawReasons, say } from "./panels.js";
import { Person } from "./person.js";

const AGAIN = 6; // rounds before a poster may be shown again
const SIMULATED = 40; // picks of a simulated person

const find = (id) => document.getElementById(id);
const buttons = [...document.querySelectorAll(".poster")];
const catalogue = await read("/pick/posters.json");

let preselector, decision, rounds, person, busy = true;

// --- the loop: decide, show, tell -------------------------------------------------------------------------------------

async function begin(name) {
  preselector = new Preselector(name);
  history.replaceState(null, "", `#${encodeURIComponent(name)}`);
  find("dashboard").href = `/preselectors/${encodeURIComponent(name)}`;
  await preselector.create(catalogue.preselector);
  rounds = await preselector.rounds();
  const last = rounds.at(-1);
  decision = last?.status === "waiting" ? await preselector.explain(last.id) : null;
  rounds = rounds.filter((round) => round.status === "told");
  await show();
}

async function decide() {
  const recent = new Set(rounds.slice(-AGAIN).flatMap((round) => round.chosen));
  return preselector.decide({
    k: 3,
    eligible: Object.keys(catalogue.posters).filter((name) => !recent.has(name)),
    at_most: Object.fromEntries(catalogue.patterns.map((pattern) => [pattern, 1])), // three different patterns
    request_id: `round-${rounds.length + 1}`,
    explain: true,
  });
}

async function show() {
  decision ??= await decide();
  const weights = await preselector.weights();
  const shown = shuffle(decision.names); // the favourite may stand anywhere
  await Promise.all(buttons.map((button, place) => hang(button, place, shown[place])));
  if (!find("reasons").hidden) explain();
  drawLearnt(weights);
  document.body.dataset.round = rounds.length + 1; // all of the page is of this round now
}

async function hang(button, place, name) {
  const image = button.querySelector("img");
  image.src = catalogue.posters[name].image;
  image.alt = `Poster ${place + 1}: ${catalogue.posters[name].description}`;
  button.dataset.arm = name;
  button.classList.remove("picked", "fresh");
  await image.decode().catch(() => {});
  button.classList.add("fresh");
}

async function pick(winner) {
  if (busy) return;
  await attempt(async () => {
    buttons.forEach((button) => button.classList.toggle("picked", button.dataset.arm === winner));
    if (!(await tell(winner))) {
      await begin(preselector.name);
      find("news").textContent = "This round is over: it was picked in another window, or the service has forgotten it.";
      return;
    }
    const arms = decision.explanation.arms;
    rounds.push({
      chosen: decision.names,
      utilities: arms.map((arm) => arm.utility),
      outcome: { names: winner === null ? [] : [winner] },
    });
    find("news").replaceChildren(...say(decision.explanation, winner));
    decision = null;
    await show();
  });
}

// Whether the service took it: another window may have picked, or the service been started again with an empty memory.
async function tell(winner) {
  try {
    await preselector.tell(decision, winner);
    return true;
  } catch (error) {
    if (error.status !== 404 && error.status !== 409) throw error;
    return false;
  }
}

async function attempt(step) {
  busy = true;
  find("problem").hidden = true;
  try {
    await step();
  } catch (error) {
    find("problem").textContent = `That did not work: ${error.message}. Pick again; nothing is counted twice.`;
    find("problem").hidden = false;
    person?.stop();
  } finally {
    busy = false;
  }
}

// --- what it has learnt -----------------------------------------------------------------------------------------------

function drawLearnt(weights) {
  const ranked = Object.entries(weights.arms).sort(([, a], [, b]) => b.utility - a.utility).map(([name]) => name);
  const truth = person?.taste;
  drawDials(find("dials"), catalogue.dials, weights.features, truth);
  drawDials(find("patterns"), catalogue.pattern_dials, weights.features, truth);
  find("truth-note").hidden = !truth;
  const past = drawPast(find("past"), rounds);
  find("past-note").hidden = find("past").hidden = !rounds.length;
  find("past-empty").hidden = rounds.length > 0;
  find("summary").textContent = summarise(weights.features);
  find("best").src = catalogue.posters[ranked[0]].image;
  find("best").alt = catalogue.posters[ranked[0]].description;
  find("best").dataset.arm = ranked[0];
  find("best").classList.toggle("unknown", !rounds.length);
  find("best-caption").textContent = caption(ranked[0]);
  find("next").replaceChildren(...(rounds.length ? ranked.slice(1, 5) : []).map(thumbnail));
  find("hits").textContent = rounds.length ? `${past.hits} of ${rounds.length}` : "–";
  find("guess").dataset.exact = past.guesses;
  find("guess").textContent = rounds.length
    ? `A blind guess among the three would have been right about ${Math.round(past.guesses)} of ${rounds.length} times.`
    : "Pick a few, and see it grow.";
  if (!rounds.length) find("news").textContent = "Click a poster, or press 1, 2 or 3; 0 if you like none of them.";
}

function caption(best) {
  if (!rounds.length) return "The one you would like best: no idea yet";
  if (!person) return `The one you would like best of all ${Object.keys(catalogue.posters).length}`;
  return `Would be liked best. In truth it is number ${person.rank(best)} of ${Object.keys(catalogue.posters).length}`;
}

function thumbnail(name) {
  const item = document.createElement("li"), image = new Image(300, 420);
  image.src = catalogue.posters[name].image;
  image.alt = catalogue.posters[name].description;
  item.append(image);
  return item;
}

// What is clear: weights of more than two standard errors, the strongest first.
function summarise(features) {
  if (!rounds.length) return "Nothing yet. Every pick says a little about colours, light, calm and patterns.";
  const words = [...catalogue.dials, ...catalogue.pattern_dials]
    .map((dial) => ({ ...dial, ...features[dial.feature] }))
    .filter((one) => Math.abs(one.weight) > 2 * one.standard_error)
    .sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight))
    .map((one) => (one.weight > 0 ? one.more : one.less || `no ${one.more}`));
  if (!words.length) return "Not sure of anything yet. Some more picks.";
  const who = person ? "This person seems" : "You seem";
  return `${who} to like: ${words.slice(0, 4).join(", ")}.`;
}

function explain() {
  const posters = new Map(buttons.map((button) => [button.dataset.arm, button.querySelector("img").alt]));
  drawReasons(find("reasons"), decision.explanation, posters, [...catalogue.dials, ...catalogue.pattern_dials]);
}

// --- buttons and keys -------------------------------------------------------------------------------------------------

function shuffle(names) {
  const shuffled = [...names];
  for (let place = shuffled.length - 1; place > 0; place -= 1) {
    const other = Math.floor(Math.random() * (place + 1));
    [shuffled[place], shuffled[other]] = [shuffled[other], shuffled[place]];
  }
  return shuffled;
}

const startAgain = () => attempt(() => begin(`posters-${Date.now().toString(36)}`));

function stopSimulation() {
  person?.stop();
  find("news").ariaLive = "polite";
  find("simulate").textContent = "Let a simulated person pick";
}

async function simulate() {
  if (person?.picks) return stopSimulation();
  person = new Person(catalogue);
  const someone = person;
  find("news").ariaLive = "off"; // four picks a second are too many to be read out
  find("simulate").textContent = "Stop";
  await startAgain();
  while (someone.picks && rounds.length < SIMULATED) {
    await someone.wait();
    if (someone.picks) await pick(someone.choose(decision.names));
  }
  if (someone === person) stopSimulation();
}

buttons.forEach((button) => button.addEventListener("click", () => pick(button.dataset.arm)));
find("none").addEventListener("click", () => pick(null));
find("simulate").addEventListener("click", simulate);
find("restart").addEventListener("click", () => {
  stopSimulation();
  person = undefined;
  startAgain();
});
find("why").addEventListener("click", () => {
  const reasons = find("reasons");
  reasons.hidden = !reasons.hidden;
  find("why").setAttribute("aria-expanded", String(!reasons.hidden));
  if (!reasons.hidden) explain();
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.key === "0") pick(null);
  else buttons.find((button) => button.dataset.key === event.key)?.click();
});

await attempt(() => begin(decodeURIComponent(location.hash.slice(1)) || catalogue.name));
