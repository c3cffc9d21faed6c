from tests.harness.warm_fixtures import _cold, _imported, _warm

__all__ = ["_cold", "_imported", "_warm"]
