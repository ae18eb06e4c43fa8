"""Write src/muhat/__init__.pyi, the public names for type checkers: ``make docs``.

``muhat/__init__.py`` imports names when they are used, which type checkers cannot follow.
"""

from pathlib import Path
from pkgutil import iter_modules

import muhat

STUB = Path(muhat.__file__).with_suffix(".pyi")

HEAD = '''"""The public names for type checkers, written by docs/stub.py."""
# ruff: noqa: I001, RUF022

from typing import Any
'''


def stub() -> str:
    """Return the content of the stub."""
    lines = [HEAD]
    for module in sorted(each.name for each in iter_modules(muhat.__path__)):
        if not module.startswith("_"):
            lines.append(f"from . import {module} as {module}")
    for name in sorted(set(muhat.__all__) - {"__version__"}):
        lines.append(f"from .{muhat._MODULE_OF[name]} import {name} as {name}")
    lines += ["", "__version__: str", "", "def _provider(role: str) -> Any: ...", ""]
    lines.append("__all__ = [")
    for name in muhat.__all__:
        lines.append(f'    "{name}",')
    lines += ["]", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
    print(f"wrote {STUB}")
