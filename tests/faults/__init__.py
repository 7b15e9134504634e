"""Runs of Drover that are broken on purpose, by schedules that follow from a seed (tools/faults)."""
