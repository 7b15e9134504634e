"""Planted bugs: known mistakes in a copy of the code, to test whether the hunt finds them (tools/planted-bugs)."""
