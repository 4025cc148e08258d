"""gua for Python: measures what a program uses (Tracker), also block by block (SubTracker, sub_track), reads the cards of
this host (gpus, processes), asks what gua recorded (who, report, pick) and which notebook a kernel runs (notebooks), and watches a notebook (%load_ext gua,
experiment). gua-python(3) and gua-notebook(7) are the manuals.

The package is pure Python and calls libgua. Users of gpu_tracker change the import: `import gua as gput`, and
`python -m gpu_tracker` becomes `python -m gua`."""
from ._lib import GuaError, lib as _library
from .analysis import CodeBlockResults, ComparisonResults, SubTrackingAnalyzer, SubTrackingResults, TrackingComparison
from .cards import GPU, GPUProcess, gpus, processes
from .commands import pick, report, who
from .notebook import experiment
from .servers import notebooks
from .sub_tracker import SubTracker, sub_track
from .tracker import Tracker

__version__ = _library.gua_version().decode()
__all__ = ["CodeBlockResults", "ComparisonResults", "GPU", "GPUProcess", "GuaError", "SubTracker",
           "SubTrackingAnalyzer", "SubTrackingResults", "Tracker", "TrackingComparison", "experiment", "gpus", "notebooks", "pick",
           "processes", "report", "sub_track", "who"]


def load_ipython_extension(shell):
    """%load_ext gua"""
    from . import notebook
    notebook.load(shell)


def unload_ipython_extension(shell):
    """%unload_ext gua"""
    from . import notebook
    notebook.unload(shell)
