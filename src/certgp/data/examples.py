"""Real data that come with the package, small enough for a demonstration."""

from __future__ import annotations

from pathlib import Path


def rain_file() -> Path:
    """The CSV file with the rain of 2016 at 4,000 places: longitude, latitude, log10_rain (NOAA, public domain).

    ``rain.txt`` beside it says where it comes from. ``certgp.read(rain_file(), target="log10_rain")`` makes rows of it.
    """
    return Path(__file__).with_name("rain.csv")
