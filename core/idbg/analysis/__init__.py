"""Derive facts about a run from its records alone, without torch."""
