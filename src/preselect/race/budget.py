"""What after-races may use, and how it is spent: the one rule for live races and for replays."""

_LEAST_SECONDS = 0.05  # of a race; starting the racers takes about as long
_LEAST_SHARE = 0.3  # of the average race: on easier instances arms hardly differ in what matters


class Budget:
    """How much after-races may use: a share of what the races have used so far.

    Whatever has been earned is spent as soon as a race took long enough to mean something, on as many arms as can run
    for that long. So the budget is never overspent, there is nothing to tune, and most is spent early, as long as much
    is left to learn. Which arms run, those about which least is known, `Policy.suggest` says.

    Parameters
    ----------
    share : float
        What a second of the races earns, at least 0.
    least : float, default 0.05
        The shortest race, in seconds, from which something is learnt about further arms.
    """

    def __init__(self, share: float, least: float = _LEAST_SECONDS) -> None:
        self.share, self.least = share, least
        self.left = 0.0  # seconds of cores
        self._races, self._seconds = 0, 0.0

    def earn(self, used: float, seconds: float) -> None:
        """Count a race: the time of cores that it has used, and how long arms have to be beaten."""
        self.left += self.share * used
        self._races += 1
        self._seconds += seconds

    def count_arms(self, seconds: float) -> int:
        """Count the arms that may run for so many seconds each after the race that was counted last."""
        long_enough = seconds >= max(self.least, _LEAST_SHARE * self._seconds / self._races)
        return int(self.left / seconds + 1e-9) if long_enough and seconds > 0.0 else 0
