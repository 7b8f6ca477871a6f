"""The disassembler that run_all.sh has set up is found when pytest is called by hand, too."""

import os
from pathlib import Path

os.environ["PATH"] += os.pathsep + str(Path(__file__).parents[1] / ".deps/sass/bin")
