"""Reports: read what passes and memory found, and say it to people. A report never changes a module."""
