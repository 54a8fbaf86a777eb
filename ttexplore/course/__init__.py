"""The notebooks of the course and the gallery: their kernels and records, trusting them, making them static."""
