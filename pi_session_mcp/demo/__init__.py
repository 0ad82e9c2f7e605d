"""The demonstration: the whole program at work, with a scripted model on a loopback port."""
