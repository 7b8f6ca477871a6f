"""Figures of index maps: which thread owns which element, which lane meets which bank. Drawn without matplotlib."""
