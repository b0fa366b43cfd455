"""What a read or write refuses, on the driver, in words that name the option or the offset."""


class OptionError(ValueError):
    """An option is unknown, missing or does not fit; the message names it and gives an example."""


class SourceError(RuntimeError):
    """The cluster does not have, or does not answer, what the read needs."""


class GoneError(SourceError):
    """A topic or partition went while it was asked about; asked again, others may be left."""


class UnansweredError(SourceError):
    """No broker answers."""


class SinkError(RuntimeError):
    """Rows cannot be written; the message says which, and what to do."""
