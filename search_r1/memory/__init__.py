"""How much memory a run needs: the model's shape, the formulae, and the table by phase."""
