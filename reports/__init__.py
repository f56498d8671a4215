"""Showing: scorecards and histories as a page, a terminal table and JUnit XML. Reads `scoring`, decides nothing."""
