"""The keeper, a small program that every process tree runs under, and the blocks that own what it runs."""
