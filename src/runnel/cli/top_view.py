"""One frame of `runnel top`, drawn with rich for a given width and height."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from runnel.cli.figures import count_text, duration_text, seconds_text, size_text
from runnel.cli.logs import printable
from runnel.cli.top_frame import Frame, TopicOrder

BARS: Final = "▁▂▃▄▅▆▇█"
PLAIN_BARS: Final = "_.-=+*#@"  # for terminals that know no other characters
BESIDE: Final = 76  # columns from which on panels stand side by side
WIDE: Final = 110  # columns from which on tables have all their columns
UPPER_ROWS: Final = 6  # inside the panels of the first row
ROWS_WITHOUT_TERMINAL: Final = 10
WARNINGS_MAX: Final = 5
HEAD_STYLE: Final = "bold"
ALARM: Final = "bold red"


class Showing(NamedTuple):
    """What the keys have changed, and what is not in a frame."""

    url: str
    interval_s: float
    clock: str  # time of day of the last look
    order: TopicOrder = TopicOrder.WRITTEN
    paused: bool = False
    silence: str = ""  # why nobody answers
    unicode: bool = True
    keys: bool = True


def draw(frame: Frame, showing: Showing, width: int, height: int | None) -> RenderableType:
    """Without a height everything of interest is drawn, else what fits."""
    warnings = _warnings(frame, showing)
    head = _head(frame, showing)
    upper = [_throughput(frame, showing, width), _requests(frame)]
    lower_rows = ROWS_WITHOUT_TERMINAL
    folder_rows = max(1, len(frame.folders))
    if height is not None:
        panels = 2 if width >= BESIDE else 4
        upper_height = (UPPER_ROWS + 2) * (panels // 2)
        taken = 1 + upper_height + (folder_rows + 3) + len(warnings) + showing.keys
        lower_rows = max(1, (height - taken) // (panels // 2) - 3)
    else:
        lower_rows = min(lower_rows, max(1, len(frame.topics), len(frame.groups)))
    lower = [_topics(frame, showing, lower_rows, width), _groups(frame, lower_rows)]
    parts: list[RenderableType] = [head, *_beside(upper, width), *_beside(lower, width)]
    parts.append(_storage(frame, width))
    parts += warnings
    if showing.keys:
        parts.append(_keys(showing))
    return Group(*parts)


def _beside(panels: Sequence[RenderableType], width: int) -> list[RenderableType]:
    if width < BESIDE:
        return list(panels)
    grid = Table.grid(expand=True)
    for _ in panels:
        grid.add_column(ratio=1)
    grid.add_row(*panels)
    return [grid]


def _head(frame: Frame, showing: Showing) -> Text:
    state = ("paused", "yellow") if showing.paused else (f"every {showing.interval_s:g} s", "dim")
    version = f" {frame.version}" if frame.version else ""
    text = Text.assemble(
        (f"runnel{version}", "bold cyan"),
        f"  broker {printable(frame.broker)}" if frame.broker else "",
        "" if frame.up_s is None else f"  up {duration_text(frame.up_s)}",
        f"  {showing.clock}  ",
        state,
        no_wrap=True,
        overflow="ellipsis",
    )
    if frame.cpu_share is not None:
        text.append(f"  CPU {frame.cpu_share:.0%}")
    if frame.memory_bytes is not None:
        text.append(f"  RSS {size_text(frame.memory_bytes)}")
    return text.append(f"  {showing.url}", "dim")  # last: it is long, and narrow screens cut it


def _panel(content: RenderableType, title: str, rows: int) -> Panel:
    return Panel(
        content, title=title, title_align="left", box=box.ROUNDED, height=rows + 2, padding=(0, 1)
    )


def _columns(*headings: str, left: int = 1) -> Table:
    """A table without lines whose first columns are names, and all others numbers."""
    table = Table(box=None, expand=True, padding=(0, 1, 0, 0), header_style="dim", pad_edge=False)
    for at, heading in enumerate(headings):
        if at < left:
            table.add_column(heading, ratio=1, no_wrap=True, overflow="ellipsis")
        else:
            table.add_column(heading, justify="right", no_wrap=True)
    return table


def _throughput(frame: Frame, showing: Showing, width: int) -> Panel:
    bars = max(8, (width // 2 if width >= BESIDE else width) - 26)
    table = Table.grid(padding=(0, 1))
    table.add_column(width=8, no_wrap=True)
    table.add_column(width=12, justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    per_second = ((frame.in_rate, frame.in_history, "in", size_text, "green"),
        (frame.out_rate, frame.out_history, "out", size_text, "blue"),
        (frame.requests_rate, frame.requests_history, "requests", count_text, "magenta"),
    )  # fmt: skip
    for rate, history, name, show, style in per_second:
        line = sparkline(history[-bars:], BARS if showing.unicode else PLAIN_BARS)
        table.add_row(Text(name, HEAD_STYLE), _rate(rate, show), Text(line, style))
    batches = f"in {_rate(frame.batches_rate, count_text)} batches"
    table.add_row("records", _rate(frame.records_rate, count_text), batches)
    open_now = _known(frame.connections, count_text)
    table.add_row("clients", open_now, f"{_rate(frame.accepted_rate, count_text)} new")
    late = frame.loop_lag_p99_s
    table.add_row("loop lag", _known(late, seconds_text), "p99" if late is not None else "")
    return _panel(table, "throughput", UPPER_ROWS)


def _requests(frame: Frame) -> Panel:
    table = _columns("request", "a second", "p50", "p99")
    room = UPPER_ROWS - 1 - bool(frame.errors)
    for row in frame.apis[:room]:
        table.add_row(
            row.api,
            count_text(row.rate),
            _known(row.p50_s, seconds_text),
            _known(row.p99_s, seconds_text),
        )
    if frame.errors:
        names = ", ".join(printable(name) for name, _ in frame.errors[:3])
        rate = count_text(frame.errors_rate or 0.0)
        table.add_row(Text(f"errors: {names}", "red"), Text(rate, "red"), "", "")
    return _panel(table, "requests", UPPER_ROWS)


def _topics(frame: Frame, showing: Showing, rows: int, width: int) -> Panel:
    headings = ["topic", "records/s", "size"]
    if wide := not BESIDE <= width < WIDE:
        headings += ["growth/s", "partitions"]
    table = _columns(*headings)
    for row in frame.topics[:rows]:
        cells = [_known(row.records_rate, count_text), size_text(row.size_bytes)]
        if wide:
            cells += [_known(row.growth_rate, _growth), f"{row.partitions:,}"]
        table.add_row(Text(printable(row.topic)), *cells)
    count = f"{len(frame.topics):,} topics by {showing.order.value}"
    return _panel(table, count, rows + 1)


def _groups(frame: Frame, rows: int) -> Panel:
    table = _columns("group", "lag", "change/s", "members")
    for row in frame.groups[:rows]:
        grows = (row.lag_rate or 0.0) > 0
        table.add_row(
            Text(printable(row.group)),
            count_text(row.lag),
            Text(_known(row.lag_rate, _change), "yellow" if grows else ""),
            "" if row.members is None else f"{row.members:,}",
        )
    count = f"{len(frame.groups):,} groups by lag"
    return _panel(table, count, rows + 1)


def _storage(frame: Frame, width: int) -> Panel:
    table = Table.grid(padding=(0, 2))
    for _ in range(4):
        table.add_column(no_wrap=True, overflow="ellipsis")
    gauge = max(6, min(30, width // 8))
    for folder in frame.folders:
        filled = round((1 - folder.free_share) * gauge)
        logs = "" if folder.used_bytes is None else f"logs {size_text(folder.used_bytes)}"
        bar = Text.assemble(("#" * filled, _disk_style(folder.free_share)), "." * (gauge - filled))
        free = f"{size_text(folder.free_bytes)} free of {size_text(folder.total_bytes)}"
        table.add_row(Text(printable(folder.folder)), bar, free, logs)
    states = [("groups", frame.group_states), ("transactions", frame.transaction_states)]
    told = [
        f"{name}: " + ", ".join(f"{count:,} {state}" for state, count in counts)
        for name, counts in states
        if counts
    ]
    if frame.oldest_transaction_s and frame.transaction_states:
        told[-1] += f" (oldest {duration_text(frame.oldest_transaction_s)})"
    line = Text("   ".join(told) or "no groups, no transactions", no_wrap=True, overflow="ellipsis")
    return _panel(Group(table, line), "storage and coordinators", max(1, len(frame.folders)) + 1)


def _disk_style(free_share: float) -> str:
    return "red" if free_share < 0.1 else "yellow" if free_share < 0.2 else "green"


def _warnings(frame: Frame, showing: Showing) -> list[RenderableType]:
    lines = [showing.silence] if showing.silence else []
    lines += frame.warnings
    shown = [
        Text(f"! {printable(line)}", ALARM, no_wrap=True, overflow="ellipsis")
        for line in lines[:WARNINGS_MAX]
    ]
    if len(lines) > WARNINGS_MAX:
        shown.append(Text(f"! and {len(lines) - WARNINGS_MAX} more", ALARM))
    return list(shown)


def _keys(showing: Showing) -> Text:
    pause = "go on" if showing.paused else "pause"
    keys = (("q", "quit"), ("p", pause), ("s", "sort topics"), ("+ -", "interval"))
    text = Text(no_wrap=True, overflow="ellipsis")
    for key, meaning in keys:
        text.append(f" {key} ", "reverse").append(f" {meaning}  ")
    return text


def sparkline(values: Sequence[float], bars: str = BARS) -> str:
    """Each value as a character, the highest one as the full bar."""
    highest = max(values, default=0.0)
    if not highest:
        return bars[0] * len(values)
    return "".join(bars[round(value / highest * (len(bars) - 1))] for value in values)


def _known(value: float | None, show: Callable[[float], str]) -> str:
    return "-" if value is None else show(value)


def _rate(value: float | None, show: Callable[[float], str]) -> str:
    return "-" if value is None else f"{show(value)}/s"


def _growth(value: float) -> str:
    return f"{'-' if value < 0 else ''}{size_text(abs(value))}"


def _change(value: float) -> str:
    return f"{'+' if value > 0 else ''}{count_text(value)}"
