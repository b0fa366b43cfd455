"""Pipelines: a YAML file says from where, decode, transform, to where and how often.

`document` and `spec` read the file and report every mistake with its line before Spark starts;
`kind` is what a kind of pipeline is made of, `kinds/` has them; `runner` runs one, and `home` keeps
its state: checkpoint, status, lock. Nothing here imports PySpark before a pipeline runs.
"""
