"""A lock whose waiters are served in the order in which they came, each woken at the moment of its turn."""

import threading
from collections import deque


class Gate:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = False
        self._line: deque[threading.Event] = deque()

    def enter(self, timeout_s: float) -> bool:
        """Whether it was this thread's turn within `timeout_s`; who was, has to `leave`."""
        with self._lock:
            if not self._taken:
                self._taken = True
                return True
            mine = threading.Event()
            self._line.append(mine)
        if mine.wait(timeout_s):
            return True
        with self._lock:
            if mine.is_set():  # between the end of the wait and this line
                return True
            self._line.remove(mine)
        return False

    def leave(self) -> None:
        """The next in line has it before anybody who comes now."""
        with self._lock:
            if self._line:
                self._line.popleft().set()
            else:
                self._taken = False


_gates: dict[str, Gate] = {}
_gates_lock = threading.Lock()


def of(database: str) -> Gate:
    """This process' gate of that database."""
    with _gates_lock:
        return _gates.setdefault(database, Gate())
