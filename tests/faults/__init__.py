"""Faults in real runs of Drover, by seeded schedules (tools/faults)."""
