from tests.harness.screen_fixtures import bench as bench
from tests.harness.screen_fixtures import painted as painted
