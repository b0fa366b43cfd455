"""Stands before the real uvloop on the path, so that the broker runs on asyncio's own loop."""

raise ImportError("uvloop is hidden: this run is on asyncio's own loop")
