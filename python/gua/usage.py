"""The results of a tracker as data classes, with gpu_tracker's field names.

Each number is in the unit that the class names; an unknown value is None. The older spelling "descendents" can be
used too."""
import dataclasses


@dataclasses.dataclass
class RSSValues:
    """Memory of a group of processes, each field its own peak."""
    total_rss: float | None  # proportional (PSS): a page that the group shares counts once
    private_rss: float | None  # unique: memory that would be free if the group ended
    shared_rss: float | None  # the difference of the two


@dataclasses.dataclass
class MaxRAM:
    unit: str
    system_capacity: float | None
    system: float | None  # used on the whole host, at the peak
    main: RSSValues
    descendants: RSSValues
    combined: RSSValues
    descendents = property(lambda self: self.descendants)


@dataclasses.dataclass
class MaxGPURAM:
    unit: str
    system_capacity: float | None  # of all cards
    system: float | None  # used on all cards, at the peak
    main: float | None
    descendants: float | None
    combined: float | None
    descendents = property(lambda self: self.descendants)


@dataclasses.dataclass
class ProcessingUnitPercentages:
    """Sum percent is of one core or card (two busy ones are 200), hardware percent of all that are expected."""
    max_sum_percent: float | None
    max_hardware_percent: float | None
    mean_sum_percent: float | None
    mean_hardware_percent: float | None


@dataclasses.dataclass
class CPUUtilization:
    system_core_count: int
    n_expected_cores: int
    system: ProcessingUnitPercentages
    main: ProcessingUnitPercentages
    descendants: ProcessingUnitPercentages
    combined: ProcessingUnitPercentages
    main_n_threads: int | None
    descendants_n_threads: int | None
    combined_n_threads: int | None
    descendents = property(lambda self: self.descendants)
    descendents_n_threads = property(lambda self: self.descendants_n_threads)


@dataclasses.dataclass
class GPUUtilization:
    system_gpu_count: int | None
    n_expected_gpus: int | None
    gpu_percentages: ProcessingUnitPercentages  # of the cards, by all processes


@dataclasses.dataclass
class ComputeTime:
    unit: str
    time: float


@dataclasses.dataclass
class ResourceUsage:
    max_ram: MaxRAM
    max_gpu_ram: MaxGPURAM
    cpu_utilization: CPUUtilization
    gpu_utilization: GPUUtilization
    compute_time: ComputeTime

    def to_json(self, legacy_spelling=False):
        """Nested dictionaries with gpu_tracker's keys; unknown values are None, which is null in JSON. With
        legacy_spelling, the keys are those of gpu_tracker before version 4: "descendents"."""
        values = dataclasses.asdict(self)
        return respelt(values) if legacy_spelling else values

    def text(self, legacy_spelling=False):
        """The same as lines of text."""
        return "\n".join(lines(self.to_json(legacy_spelling)))

    def __str__(self):
        return self.text()


def respelt(values):
    """The dictionaries with the older spelling in their keys."""
    return {key.replace("descendants", "descendents"): respelt(value) if isinstance(value, dict) else value
            for key, value in values.items()}


# Words that are spelt differently in a label and in its key.
LABELS = {
    "max_ram": "Max RAM",
    "max_gpu_ram": "Max GPU RAM",
    "cpu_utilization": "CPU utilization",
    "gpu_utilization": "GPU utilization",
    "gpu_percentages": "GPU percentages",
    "total_rss": "Total RSS",
    "private_rss": "Private RSS",
    "shared_rss": "Shared RSS",
    "n_expected_cores": "Number of expected cores",
    "n_expected_gpus": "Number of expected GPUs",
    "system_gpu_count": "System GPU count",
    "main_n_threads": "Main number of threads",
    "descendants_n_threads": "Descendants number of threads",
    "descendents_n_threads": "Descendents number of threads",
    "combined_n_threads": "Combined number of threads",
}


def label(key):
    return LABELS.get(key) or key.replace("_", " ").capitalize()


def shown(value):
    """A number with at most three decimals; "unknown" for None."""
    if value is None:
        return "unknown"
    return str(round(value, 3)) if isinstance(value, float) else str(value)


def lines(values, depth=0):
    """The text report: three blanks per level, one label and value per line."""
    for key, value in values.items():
        indent = "   " * depth
        if isinstance(value, dict):
            yield f"{indent}{label(key)}:"
            yield from lines(value, depth + 1)
        else:
            yield f"{indent}{label(key)}: {shown(value)}"


@dataclasses.dataclass
class TrackedGPU:
    """One card during the tracking. Bytes, percent, joules, seconds; "tree" means the tracked processes."""
    uuid: str
    name: str
    index: int
    mig_index: int | None
    mem_total_bytes: int | None
    used_max_bytes: int | None
    tree_max_bytes: int | None
    util_max_pct: float | None
    util_mean_pct: float | None
    tree_util_max_pct: float | None
    tree_util_mean_pct: float | None
    energy_j: float | None
    tree_energy_j: float | None
    active_s: float | None
    idle_held_s: float | None
    tree_processes: int


@dataclasses.dataclass
class TrackedProcess:
    """One tracked process. Seconds are after the start of the tracker; ended_s None: it was running at the end."""
    pid: int
    ppid: int | None
    uid: int | None
    command: str
    started_s: float | None
    ended_s: float | None
    user_s: float | None
    system_s: float | None
    ram_total_bytes: int | None
    ram_private_bytes: int | None
    rss_bytes: int | None
    gpu_ram_bytes: int | None
    threads_max: int | None
    unreadable: int


@dataclasses.dataclass
class Details:
    """Values that gpu_tracker does not have, in bytes, seconds and joules; lists are [main, descendants, combined]."""
    elapsed_s: float
    samples: int | None
    ram_swap_bytes: list
    ram_charged_bytes: int | None  # what a job is charged for: files shared with processes outside count whole
    user_s: list
    system_s: list
    read_bytes: int | None
    written_bytes: int | None
    minor_faults: int | None
    major_faults: int | None
    voluntary_switches: int | None
    involuntary_switches: int | None
    processes_seen: int | None
    processes_peak: int | None
    gpu_active_s: float | None
    gpu_idle_held_s: float | None
    gpu_context_bytes: int | None
    energy_j: float | None
    tree_energy_j: float | None
    cards: list[TrackedGPU]
    processes: list[TrackedProcess]
    others: int | None  # processes that have no row
    warnings: list[str]
    gpu_note: str  # why GPU values are unknown, or ""

    @classmethod
    def of(cls, result):
        """From the library's result."""
        found = {field.name: result[field.name] for field in dataclasses.fields(cls)}
        for name, row in (("cards", TrackedGPU), ("processes", TrackedProcess)):
            names = [field.name for field in dataclasses.fields(row)]
            found[name] = [row(**{key: values[key] for key in names}) for values in found[name]]
        return cls(**found)
