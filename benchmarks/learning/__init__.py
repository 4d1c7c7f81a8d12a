"""The learning proof: a policy of a million parameters learns to search, by RL alone.

``python -m benchmarks.learning --help``. Reading order: reading, policy, pretrain -> workshop ->
experiments, random_retriever -> plots.
"""
