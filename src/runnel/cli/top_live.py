"""The live part of `runnel top`: looks again and again, heeds the keys, and redraws."""

import time
from typing import Final

from rich.console import Console, RenderableType
from rich.live import Live

from runnel.cli.keyboard import Keyboard, listening
from runnel.cli.metrics import INTERVAL_MAX_S, read
from runnel.cli.scraping import UnansweredError, scrape_text
from runnel.cli.top_frame import TopicOrder
from runnel.cli.top_model import WANTED, TopModel
from runnel.cli.top_view import Showing, draw

FIRST_INTERVAL_S: Final = 0.5  # the first rates appear soon, whatever was asked for
LOOK_AT_SIZE_EVERY_S: Final = 0.25  # a window that is resized is drawn anew
FASTEST_S: Final = 0.5
SCRAPE_TIMEOUT_S: Final = 5.0


class LiveView:
    """The scrapes, what the keys have changed, and the screen."""

    def __init__(self, url: str, interval_s: float, console: Console) -> None:
        self._url = url
        self._interval_s = interval_s
        self._console = console
        self._model = TopModel()
        self._order = TopicOrder.WRITTEN
        self._paused = False
        self._silence = ""
        self._looked_at_s = 0.0  # time of day

    def look(self) -> None:
        """Raises UnansweredError."""
        scrape = read(self._url, scrape_text(self._url, SCRAPE_TIMEOUT_S), WANTED)
        self._model.observe(scrape, time.monotonic())
        self._looked_at_s, self._silence = time.time(), ""

    def print(self) -> None:
        """One frame, as long as it has to be, for a file or a pipe."""
        self._console.print(self._drawn(keys=False, height=None))

    def run(self) -> None:
        """Returns when the user quits."""
        with (
            listening() as keyboard,
            Live(console=self._console, screen=True, auto_refresh=False) as live,
        ):
            self._draw(live)
            due_s = time.monotonic() + min(FIRST_INTERVAL_S, self._interval_s)
            while self._until(due_s, keyboard, live):
                due_s = time.monotonic() + self._interval_s
                if self._paused:
                    continue
                try:
                    self.look()
                except UnansweredError as error:
                    self._silence = f"no answer since {self._clock()}: {error.brief}"
                self._draw(live)

    def _until(self, due_s: float, keyboard: Keyboard, live: Live) -> bool:
        """Heeds the keys until it is time to look again. False: quit."""
        size = self._console.size
        while (left_s := due_s - time.monotonic()) > 0:
            keys = keyboard.wait(min(left_s, LOOK_AT_SIZE_EVERY_S))
            if "q" in keys.lower():
                return False
            for key in keys:
                self._heed(key)
            if keys or self._console.size != size:
                size = self._console.size
                self._draw(live)
        return True

    def _heed(self, key: str) -> None:
        match key.lower():
            case "p" | " ":
                self._paused = not self._paused
            case "s":
                self._order = self._order.next()
            case "+" | "=":
                self._interval_s = min(self._interval_s * 2, INTERVAL_MAX_S)
            case "-":
                self._interval_s = max(self._interval_s / 2, FASTEST_S)

    def _draw(self, live: Live) -> None:
        live.update(self._drawn(keys=True, height=self._console.height), refresh=True)

    def _drawn(self, keys: bool, height: int | None) -> RenderableType:
        showing = Showing(
            url=self._url,
            interval_s=self._interval_s,
            clock=self._clock(),
            order=self._order,
            paused=self._paused,
            silence=self._silence,
            unicode=self._console.encoding.startswith("utf"),
            keys=keys,
        )
        frame = self._model.frame(self._looked_at_s, self._order)
        return draw(frame, showing, self._console.width, height)

    def _clock(self) -> str:
        return time.strftime("%H:%M:%S", time.localtime(self._looked_at_s))
