"""Registrations in clients."""
