"""One function per API: (context, services, request) -> response, `Parked`, coroutine, or None."""
