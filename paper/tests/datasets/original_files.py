"""Small files in the formats of the sources, made from numbers so that the parsers' results are known."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np

BIKE_HEADER = (
    "instant,dteday,season,yr,mnth,hr,holiday,weekday,workingday,weathersit,"
    "temp,atemp,hum,windspeed,casual,registered,cnt"
)
BIKE_LINES = (
    "1,2011-01-01,1,0,1,0,0,6,0,1,0.24,0.2879,0.81,0,3,13,16",
    "2,2011-01-01,4,1,12,23,1,0,1,4,0.22,0.2727,0.8,0.1,8,32,40",
)
POWER_HEADER = (
    "Date;Time;Global_active_power;Global_reactive_power;Voltage;Global_intensity;"
    "Sub_metering_1;Sub_metering_2;Sub_metering_3"
)
POWER_LINES = (
    "16/12/2006;17:24:00;4.216;0.418;234.840;18.400;0.000;1.000;17.000",
    "28/4/2007;00:21:00;?;?;?;?;?;?;",
    "1/1/2007;23:30:00;2.580;0.136;241.970;10.600;3.000;0.000;0.000",
)


def zip_named(path: Path, members: dict[str, bytes | str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def tar_bytes(members: dict[str, bytes | str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members.items():
            data = content.encode() if isinstance(content, str) else content
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def numbers(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    """Numbers that survive their text form."""
    return np.random.default_rng(seed).integers(-1000, 1000, (rows, columns)) / 8.0


def lines(values: np.ndarray, delimiter: str = ",", header: str | None = None) -> str:
    body = "\n".join(delimiter.join(f"{value!r}" for value in row.tolist()) for row in values)
    return (f"{header}\n" if header else "") + body + "\n"


def as_text(*all_lines: str) -> str:
    return "\n".join(all_lines) + "\n"
