"""Planted bugs: known slips, put into a copy of the code one at a time, to see whether the hunt finds them (tools/planted-bugs)."""
