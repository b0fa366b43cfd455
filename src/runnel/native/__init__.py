"""The record decoder: see records.py for reading, encode.py for building, columns.py for the types."""
