"""Figures drawn by matplotlib, from the rows of one type."""
