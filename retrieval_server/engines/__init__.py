"""Search engines made of others: fused, re-ranked, or asked over the internet."""
