"""The rules of tools/tidy.py, one module a subject."""
