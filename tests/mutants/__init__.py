"""Mutation testing: one small change to the code at a time, to see whether a test notices (tools/mutants)."""
