"""Application logs in a topic: sending them there, watching them, and finding them again.

    import logging
    from runnel.logs import RunnelHandler

    logging.getLogger().addHandler(RunnelHandler("localhost:9092", "app-logs", service="billing"))

`RunnelHandler` is for `logging`, `RunnelProcessor` for structlog. Neither waits for the network:
records go to a buffer of a fixed size, and a thread sends them. They need nothing beside Runnel
itself. The names are imported when they are first used, as the commands need other modules of
this package.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runnel.logs.handler import RunnelHandler
    from runnel.logs.processor import RunnelProcessor

_MODULES = {"RunnelHandler": "handler", "RunnelProcessor": "processor"}
__all__ = ["RunnelHandler", "RunnelProcessor"]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
