"""For all tests: how long an example of Hypothesis takes is the machine's affair."""

from hypothesis import settings

settings.register_profile("runnel", deadline=None)
settings.load_profile("runnel")
