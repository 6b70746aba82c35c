"""Certificates: proven distances between a low-rank GP and the exact one."""
