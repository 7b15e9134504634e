"""Mutation testing: one small change to the code at a time, to test whether a test fails (tools/mutants)."""
