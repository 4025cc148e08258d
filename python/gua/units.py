"""Units of results: the factors from bytes and seconds. A megabyte is 10^6 bytes, a mebibyte 2^20."""

SIZES = {
    "bytes": 1.0,
    "kilobytes": 1e-3,
    "megabytes": 1e-6,
    "gigabytes": 1e-9,
    "terabytes": 1e-12,
    "kibibytes": 1 / 2**10,
    "mebibytes": 1 / 2**20,
    "gibibytes": 1 / 2**30,
    "tebibytes": 1 / 2**40,
}
TIMES = {"seconds": 1.0, "minutes": 1 / 60, "hours": 1 / 3600, "days": 1 / 86400}


def factor(name, kind, units):
    """The factor of a unit; raises a ValueError that lists the valid units."""
    try:
        return units[name]
    except (KeyError, TypeError):
        raise ValueError(f'"{name}" is not a valid {kind} unit. Valid values are '
                         f'{", ".join(sorted(units))}') from None


def scaled(value, by):
    """The value times the factor; None stays None."""
    return None if value is None else value * by
