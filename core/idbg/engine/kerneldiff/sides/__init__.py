"""Run, compare and judge the sides of a comparison."""
