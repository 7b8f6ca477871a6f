"""What all tests share: the disassembler that run_all.sh has set up is found when pytest is called by hand, too; a module
of tests is skipped where a package that it needs could not be set up; and Ctrl-C works in the programs that tests start."""

import importlib.util
import os
import signal
from pathlib import Path

import pytest

os.environ["PATH"] += os.pathsep + str(Path(__file__).parents[1] / ".deps/sass/bin")

# A shell's background job ignores Ctrl-C and hands that on to what it starts, unless it is handled in between.
signal.signal(signal.SIGINT, signal.default_int_handler)

MISSING = {name for name in ("pandas", "matplotlib", "rich", "jinja2") if not importlib.util.find_spec(name)}
if MISSING:
    collect_ignore = ["plots"]  # all of it draws


class Module(pytest.Module):
    def _getobj(self):
        try:
            return super()._getobj()
        except self.CollectError as error:
            missing = getattr(error.__cause__, "name", None)
            if missing in MISSING:
                pytest.skip(f"there is no {missing} here", allow_module_level=True)
            raise


def pytest_pycollect_makemodule(module_path, parent):
    return Module.from_parent(parent, path=module_path)
