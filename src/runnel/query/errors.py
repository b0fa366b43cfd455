"""What a query refuses, in words that say what to do."""


class QueryError(Exception):
    """The statement, an option or the data is not as it has to be; nothing has changed."""


class MissingExtraError(QueryError):
    """A package that SQL needs is not installed."""


class FailedError(QueryError):
    """It was tried, and it did not work: no broker answers, a file cannot be read."""
