"""Words and forms that several rooms share, and that mean the same in each. No I/O."""
