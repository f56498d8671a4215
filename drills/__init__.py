"""Running: drill scripts, the world, adapters, observers, the command line. The package that users import."""
