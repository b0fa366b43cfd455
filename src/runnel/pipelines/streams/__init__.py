"""What the streaming kinds compute, apart from how it is run: windows, sessions, polls, scans.

Most of it is plain Python, the same in a test, in a task of Spark and on the driver.
"""
