from tests.harness.warm_fixtures import _cold, _warm

__all__ = ["_cold", "_warm"]
