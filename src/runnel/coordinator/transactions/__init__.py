"""Transactions: which producer writes where, and whether it counts."""
