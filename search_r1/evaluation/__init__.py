"""Evaluation of checkpoints and baselines on question sets, without a trainer."""
