"""Widgets that panes use: lists, code, sections, prompts. They know nothing of a session."""
