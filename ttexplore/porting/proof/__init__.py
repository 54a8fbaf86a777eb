"""Proving a port: the foreign source is run, and what it gives is compared with what the skeleton gives."""
