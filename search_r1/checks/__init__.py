"""The checks of a config, one module for each part of it; `search_r1.check` runs them all."""
