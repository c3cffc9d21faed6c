"""Report runs and sessions: as text, JSON, and documents for people and CI."""
