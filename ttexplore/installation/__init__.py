"""What is installed, and whether a device environment works."""
