"""How much CPU time after-races may use, and when; real races and replays share this rule."""

_LEAST_SECONDS = 0.05  # shorter races are ignored; starting the racers takes about as long
_LEAST_SHARE = 0.3  # shorter than this share of the average, races are too easy to tell arms apart


class Budget:
    """The CPU time that after-races may use: a share of what the races have used so far.

    The budget is spent after the next race that took long enough to teach something, on as many arms as can run for as
    long as that race. So it is never exceeded, and spent early, while much is left to learn. `Policy.suggest` says
    which arms run: those about which least is known.

    Parameters
    ----------
    share : float
        How many seconds of after-races a second of the races earns, at least 0.
    least : float, default 0.05
        The shortest race, in seconds, from which something is learnt about further arms.
    """

    def __init__(self, share: float, least: float = _LEAST_SECONDS) -> None:
        self.share, self.least = share, least
        self.left = 0.0  # seconds of core time
        self._races, self._seconds = 0, 0.0

    def earn(self, used: float, seconds: float) -> None:
        """Count a race, given the CPU time that it used, and how long it took, which other arms have to beat."""
        self.left += self.share * used
        self._races += 1
        self._seconds += seconds

    def count_arms(self, seconds: float) -> int:
        """Return how many arms can run for this long; 0 if the race was too short to teach much."""
        long_enough = seconds >= max(self.least, _LEAST_SHARE * self._seconds / self._races)
        return int(self.left / seconds + 1e-9) if long_enough and seconds > 0.0 else 0
