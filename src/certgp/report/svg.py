"""Charts as inline SVG: text stays text, colours come from the page's style, so that dark mode and print follow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from certgp.markup import Markup, tag
from certgp.report.axes import Axis, tick_label

WIDTH, HEIGHT = 400.0, 270.0
_LETTER = 9.0  # width of a letter at most, on a phone
_LEFT, _RIGHT, _TOP, _BOTTOM = 54.0, 12.0, 10.0, 42.0


def shortened(text: str, width: float) -> str:
    """Words that fit into a width, also in the larger letters of a phone."""
    most = int(width / _LETTER)
    return text if len(text) <= most else f"{text[: most - 1]}…"


class Chart:
    """A drawing with two axes. Shapes are clipped to their frame by the axes themselves."""

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        labels: tuple[str, str] = ("", ""),
        *,
        height: float = HEIGHT,
        log: tuple[bool, bool] = (False, False),
        left: float = _LEFT,
    ) -> None:
        self.height = height
        self.x = Axis(*x, left, WIDTH - _RIGHT, shortened(labels[0], WIDTH - _RIGHT - left), log[0])
        self.y = Axis(*y, height - _BOTTOM, _TOP, shortened(labels[1], height - _BOTTOM - _TOP), log[1])
        self._shapes: list[Markup] = []

    def add(self, shape: Markup) -> None:
        """Draw over what is there."""
        self._shapes.append(shape)

    def line(self, points: Iterable[tuple[float, float]], class_: str) -> None:
        """Straight lines through points."""
        self.add(tag("polyline", points=self._path(points), class_=class_))

    def band(self, xs: Sequence[float], lower: Sequence[float], upper: Sequence[float], class_: str) -> None:
        """The area between two curves."""
        there, back = list(zip(xs, upper, strict=True)), list(zip(xs, lower, strict=True))[::-1]
        self.add(tag("polygon", points=self._path([*there, *back]), class_=class_))

    def box(self, x: tuple[float, float], y: tuple[float, float], class_: str, opacity: float | None = None) -> None:
        """A rectangle between two values on either axis."""
        left, right = sorted((self.x(x[0]), self.x(x[1])))
        top, bottom = sorted((self.y(y[0]), self.y(y[1])))
        size = {"x": left, "y": top, "width": right - left, "height": bottom - top}
        self.add(tag("rect", **size, class_=class_, fill_opacity=opacity))

    def dot(self, x: float, y: float, class_: str, id: str | None = None) -> None:
        """A point."""
        self.add(tag("circle", cx=self.x(x), cy=self.y(y), r=3.5, class_=class_, id=id))

    def whisker(self, x: float, lower: float, upper: float, class_: str) -> None:
        """An upright line from one value to another."""
        self.add(tag("line", x1=self.x(x), x2=self.x(x), y1=self.y(lower), y2=self.y(upper), class_=class_))

    def note(self, x: float, y: float, text: str, class_: str = "note", anchor: str = "start") -> None:
        """Words at a value."""
        self.add(tag("text", text, x=self.x(x), y=self.y(y), class_=class_, text_anchor=anchor))

    def draw(self, title: str, description: str, *, x_ticks: bool = True, y_ticks: bool = True) -> Markup:
        """The whole drawing, with its title and description for those who do not see it."""
        parts = [
            tag("title", title),
            tag("desc", description),
            *(self._y_axis() if y_ticks else []),
            *(self._x_axis() if x_ticks else []),
            *self._shapes,
        ]
        frame = f"0 0 {WIDTH:g} {self.height:g}"
        return tag("svg", *parts, viewbox=frame, role="img", aria_label=f"{title}. {description}")

    def _path(self, points: Iterable[tuple[float, float]]) -> str:
        return " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)

    def _x_axis(self) -> list[Markup]:
        base, parts = self.y.start, []
        for value in self.x.ticks():
            at = self.x(value)
            parts.append(tag("line", x1=at, x2=at, y1=self.y.end, y2=base, class_="grid"))
            label = tick_label(value)
            at = min(at, WIDTH - 0.5 * _LETTER * len(label))  # the last one stays inside
            parts.append(tag("text", label, x=at, y=base + 15.0, class_="tick", text_anchor="middle"))
        middle = 0.5 * (self.x.start + self.x.end)
        return [*parts, tag("text", self.x.label, x=middle, y=self.height - 6.0, class_="axis", text_anchor="middle")]

    def _y_axis(self) -> list[Markup]:
        left, parts = self.x.start, []
        for value in self.y.ticks(5):
            at = self.y(value)
            parts.append(tag("line", x1=left, x2=self.x.end, y1=at, y2=at, class_="grid"))
            parts.append(tag("text", tick_label(value), x=left - 6.0, y=at + 4.0, class_="tick", text_anchor="end"))
        middle = 0.5 * (self.y.start + self.y.end)
        turned = f"rotate(-90 12 {middle:.1f})"
        label = tag("text", self.y.label, x=12.0, y=middle, class_="axis", text_anchor="middle", transform=turned)
        return [*parts, label]
