"""Topics as Arrow batches: a range of offsets, from the broker or its files, as typed columns.

Spark and SQL are built on it; nothing here knows of either but for the types of columns.
"""
