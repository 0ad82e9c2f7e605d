"""The whole thing end to end with a scripted loopback model."""
