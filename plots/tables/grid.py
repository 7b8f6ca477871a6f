"""A table of strings that the HTML report and Markdown share."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Grid:
    """Headings and rows; the first `left` columns hold text, the others numbers (set to the right)."""

    head: list[str]
    rows: list[list[str]]
    left: int = 1

    def markdown(self) -> str:
        """The table in Markdown; a cell may hold links but no line breaks or bare bars."""
        rule = ["---" if i < self.left else "---:" for i in range(len(self.head))]
        rows = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in self.rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in [self.head, rule, *rows])

    def plain_markdown(self) -> str:
        """The table in Markdown with text that may look like markup escaped."""
        rows = [[escape(cell) for cell in row] for row in self.rows]
        return Grid([escape(cell) for cell in self.head], rows, self.left).markdown()


def escape(text: str) -> str:
    """Text that may look like markup, for a cell of Markdown."""
    return "".join("\\" + c if c in "\\`*<>[]" else c for c in text)
