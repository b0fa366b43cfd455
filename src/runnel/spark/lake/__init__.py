"""Rows and whole topics into Delta, Iceberg and Parquet tables, one commit per batch."""
