"""Data preparation: question sets to parquet, and the fictional encyclopedia.

Run it as `search-r1 prepare --help`.
"""
