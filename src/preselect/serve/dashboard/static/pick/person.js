// Somebody simulated, with a taste that is known: the utility of a poster is a sum of weights times features, each in
// standard deviations, and the pick is the best after noise (Plackett-Luce).

const SPREAD = 3; // the standard deviation of the utilities of all posters
const PAUSE = 260; // milliseconds before a pick

const mean = (values) => values.reduce((sum, one) => sum + one, 0) / values.length;
const deviation = (values) => Math.sqrt(mean(values.map((one) => (one - mean(values)) ** 2)));
const normal = () => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
const gumbel = () => -Math.log(-Math.log(1 - Math.random()));

export class Person {
  constructor({ preselector, dials, pattern_dials: patterns }) {
    const arms = Object.entries(preselector.arms), features = Object.keys(arms[0][1]);
    const scales = Object.fromEntries(features.map((feature) => {
      const values = arms.map(([, one]) => one[feature]);
      return [feature, [mean(values), deviation(values)]];
    }));
    const drawn = Object.fromEntries([...dials, ...patterns].map(({ feature, strength }) => [feature, strength * normal()]));
    const worth = (one) => features.reduce((sum, name) => sum + drawn[name] * (one[name] - scales[name][0]) / scales[name][1], 0);
    const size = SPREAD / deviation(arms.map(([, one]) => worth(one)));
    this.taste = Object.fromEntries(features.map((name) => [name, size * drawn[name]]));
    this.utilities = new Map(arms.map(([name, one]) => [name, size * worth(one)]));
    this.picks = true;
  }

  // The best of some posters, and of nothing at all, after noise; null for nothing.
  choose(names) {
    const options = [...names.map((name) => [name, this.utilities.get(name) + gumbel()]), [null, -SPREAD + gumbel()]];
    return options.reduce((best, one) => (one[1] > best[1] ? one : best))[0];
  }

  // The place of a poster among all by this taste, from 1.
  rank(name) { return 1 + [...this.utilities.values()].filter((one) => one > this.utilities.get(name)).length; }

  wait() { return new Promise((go) => { setTimeout(go, PAUSE); }); }

  stop() { this.picks = false; }
}
