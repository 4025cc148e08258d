"""The text report of a tracker as its readers know it: every label, in order; # stands for a number."""
import re

RSS = """      Total RSS: #
      Private RSS: #
      Shared RSS: #
"""
PERCENT = """      Max sum percent: #
      Max hardware percent: #
      Mean sum percent: #
      Mean hardware percent: #
"""


def layout(ram_unit="gigabytes", gpu_ram_unit="gigabytes", time_unit="hours"):
    return (f"Max RAM:\n   Unit: {ram_unit}\n   System capacity: #\n   System: #\n"
            + "".join(f"   {group}:\n{RSS}" for group in ("Main", "Descendants", "Combined"))
            + f"Max GPU RAM:\n   Unit: {gpu_ram_unit}\n   System capacity: #\n   System: #\n   Main: #\n"
              "   Descendants: #\n   Combined: #\n"
            + "CPU utilization:\n   System core count: #\n   Number of expected cores: #\n"
            + "".join(f"   {group}:\n{PERCENT}" for group in ("System", "Main", "Descendants", "Combined"))
            + "   Main number of threads: #\n   Descendants number of threads: #\n   Combined number of threads: #\n"
            + f"GPU utilization:\n   System GPU count: #\n   Number of expected GPUs: #\n   GPU percentages:\n{PERCENT}"
            + f"Compute time:\n   Unit: {time_unit}\n   Time: #\n")


def without_numbers(text):
    """The text with # for each number of at most three decimals."""
    return re.sub(r"(?m)(?<=: )\d+(\.\d{1,3})?$", "#", text)


def number_at(text, *labels):
    """The number below a chain of labels: number_at(text, "Max RAM", "Main", "Total RSS")."""
    at = 0
    for depth, label in enumerate(labels):
        found = re.compile(rf"(?m)^{'   ' * depth}{label}:(?: (.*))?$").search(text, at)
        assert found, labels
        at = found.end()
    return float(found[1])
