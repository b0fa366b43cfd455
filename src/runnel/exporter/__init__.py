"""The process beside a broker that tells how it is: it maps the broker's numbers and serves them.

Nothing here imports the broker, nor anything that takes memory: the process is to stay at some ten
megabytes. `layout.py` is what both processes know of the mapped file, `catalogue.py` what every
metric is called; `reading.py`, `text.py` and `http.py` are the way from the file to the answer.
"""
