"""State machines that answer for groups and transactions: they take requests and time, do no IO."""
