"""Training that does not collapse: what is watched, when it alarms, and what then happens."""
