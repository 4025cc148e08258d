"""gua for Python: measures what a program uses (Tracker), also block by block (SubTracker, sub_track), and reads the
cards of this host (gpus, processes). gua-python(3) is the manual.

The package is pure Python and calls libgua. Users of gpu_tracker change the import: `import gua as gput`, and
`python -m gpu_tracker` becomes `python -m gua`."""
from ._lib import GuaError, lib as _library
from .analysis import CodeBlockResults, ComparisonResults, SubTrackingAnalyzer, SubTrackingResults, TrackingComparison
from .cards import GPU, GPUProcess, gpus, processes
from .sub_tracker import SubTracker, sub_track
from .tracker import Tracker

__version__ = _library.gua_version().decode()
__all__ = ["CodeBlockResults", "ComparisonResults", "GPU", "GPUProcess", "GuaError", "SubTracker",
           "SubTrackingAnalyzer", "SubTrackingResults", "Tracker", "TrackingComparison", "gpus", "processes", "sub_track"]
