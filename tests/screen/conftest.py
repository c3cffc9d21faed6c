from tests.harness.screen_fixtures import bench as bench
