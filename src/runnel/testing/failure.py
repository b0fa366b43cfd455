"""What a test sees when its broker did not do its part."""


class BrokerError(Exception):
    """The broker did not start, did not stop or refused a request; the message says why."""
