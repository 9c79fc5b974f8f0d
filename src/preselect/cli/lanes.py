"""Work on several items at once, in threads called lanes, each of which takes one item after the other."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")

_TICK_SECONDS = 0.25


def work_in_lanes(items: Iterable[T], work: Callable[[T], object], lanes: int, stop: Callable[[], object]) -> None:
    """Call `work` with each item, at most `lanes` of them at a time; with one lane, in this thread.

    If a call fails, or on Ctrl-C, no further item is taken and `stop` is called, which has to end the running calls.
    The error is raised when they have ended.

    Parameters
    ----------
    items : iterable
        What to work on. An item is taken when a lane is free; the iterable may take long to yield it.
    work : callable
        Called with an item.
    lanes : int
        How many calls there may be at a time.
    stop : callable
        Ends the running calls.
    """
    if lanes == 1:
        for item in items:
            work(item)
    else:
        _Lanes(work, lanes).run(items, stop)


class _Lanes(Generic[T]):
    def __init__(self, work: Callable[[T], object], lanes: int) -> None:
        self.work, self.lanes = work, lanes
        self.threads, self.free = ThreadPoolExecutor(lanes), threading.Semaphore(lanes)
        self.ended: SimpleQueue[BaseException | None] = SimpleQueue()
        self.is_over = False

    def run(self, items: Iterable[T], stop: Callable[[], object]) -> None:
        try:
            # nobody waits for the thread that takes the items: the next one may never come
            threading.Thread(target=self._feed, args=(items,), daemon=True).start()
            error = self._wait()
            if error is not None:
                raise error
        except BaseException:
            self.is_over = True
            stop()
            raise
        finally:
            self.threads.shutdown()

    def _wait(self) -> BaseException | None:
        """Wait for the end or the first error, and wake often: Ctrl-C wakes only the thread that receives it."""
        while True:
            try:
                return self.ended.get(timeout=_TICK_SECONDS)
            except Empty:
                continue

    def _feed(self, items: Iterable[T]) -> None:
        try:
            for item in items:
                self.free.acquire()
                if self.is_over:
                    return
                self.threads.submit(self._do, item)
            for _ in range(self.lanes):
                self.free.acquire()
            self.ended.put(None)
        except BaseException as error:
            self.ended.put(error)

    def _do(self, item: T) -> None:
        try:
            self.work(item)
        except BaseException as error:
            self.ended.put(error)
        finally:
            self.free.release()
