"""Ending a blocking exchange over a socket from outside it."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anima.judge.call import Call


class Watch:
    """Ends a blocking exchange from outside: at a deadline, or when told to.

    A blocked read notices neither a server that drips bytes nor another thread's wish; a socket shut down under it
    does wake it.
    """

    def __init__(self) -> None:
        self.late = self.cancelled = False
        self._condition = threading.Condition()
        self._deadline = self._wakes = float("inf")
        self._socket: socket.socket | None = None
        self._over = False
        self._thread: threading.Thread | None = None

    def arm(self, deadline: float = float("inf")) -> None:
        """Set the time at which the exchange ends; none at all by default."""
        with self._condition:
            self._deadline = deadline
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="anima-judge-watch", daemon=True)
                self._thread.start()
            elif deadline < self._wakes:
                self._condition.notify_all()

    def trace(self, event: str, info: dict[str, Any]) -> None:
        """Take note of the socket; httpx calls this at each step of an exchange."""
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            with self._condition:
                self._socket = info["return_value"].get_extra_info("socket")
                if self.late or self.cancelled:
                    self._shut()

    def cancel(self) -> None:
        """End the exchange now."""
        with self._condition:
            self.cancelled = True
            self._shut()
            self._condition.notify_all()

    def check(self, call: Call) -> None:
        """Raise the call's error if the exchange was ended from outside."""
        if self.cancelled:
            raise call.cancelled()
        if self.late:
            raise call.late()

    def sleep(self, seconds: float) -> None:
        """Wait, unless cancelled."""
        with self._condition:
            self._condition.wait_for(lambda: self.cancelled, seconds)

    def close(self) -> None:
        """Stop watching."""
        with self._condition:
            self._over, self._socket = True, None
            self._condition.notify_all()
        if self._thread not in (None, threading.current_thread()):
            self._thread.join()

    def _run(self) -> None:
        with self._condition:
            while not self._over and not self.late:
                self._wakes = self._deadline
                left = self._deadline - time.monotonic()
                if left > 0:
                    self._condition.wait(None if left == float("inf") else left)
                else:
                    self.late = True
                    self._shut()

    def _shut(self) -> None:
        if self._socket is not None:
            with suppress(OSError):  # gone already
                # Not the method of an SSL socket, which would take its state away from the thread that reads.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
