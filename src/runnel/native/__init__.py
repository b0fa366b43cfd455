"""The record decoder: records.py reads, encode.py builds, columns.py has the types."""
