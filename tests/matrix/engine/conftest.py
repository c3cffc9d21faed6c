from tests.harness.engine_fixtures import _fresh_compiles, ran, seeded, way

__all__ = ["_fresh_compiles", "ran", "seeded", "way"]
