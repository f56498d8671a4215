"""The version of the installed distribution."""

from importlib import metadata

VERSION = metadata.version("stopdrill")
