"""Benchmarks: ratios of two measurements in one run, because a machine's wall times alone mean little.

Each module has `measure() -> list[Ratio]` and can be run: `python -m bench.keeper`.
"""
