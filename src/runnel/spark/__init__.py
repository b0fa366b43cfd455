"""Spark reads and writes topics through PySpark: sources and sinks in Python, without jars."""
