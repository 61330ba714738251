"""Plots of a result, as SVG. Without matplotlib there are none."""

from . import matrix


def _bars(axes, rows):
    names = [row["name"] for row in rows]
    rates = [row["throughput"]["median"] for row in rows]
    error = [row["throughput"]["median"] * row["throughput"]["spread"] for row in rows]
    colours = ["tab:blue" if row["dut"] == "sluiced" else "tab:gray" for row in rows]
    axes.barh(names, rates, xerr=error, color=colours)
    axes.invert_yaxis()
    axes.set_xlabel("million frames a second (blue: sluiced, grey: peers)")


def _latencies(axes, latency):
    keys = ["p50", "p90", "p99", "p99.9", "p99.99", "max"]
    for share, percentiles in latency.items():
        axes.plot(keys, [percentiles[key] for key in keys], marker="o",
                  label=f"{share} % of the no-drop rate")
    axes.set_yscale("log")
    axes.set_ylabel("microseconds")
    axes.legend()


def draw(result, folder, stem):
    """@return paths of the pictures."""
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use("svg")
    from matplotlib import pyplot
    # The same figures give the same file.
    matplotlib.rcParams["svg.hashsalt"] = "sluice"
    paths = []

    def save(kind, figure):
        paths.append(folder / f"{stem}-{kind}.svg")
        figure.savefig(paths[-1], bbox_inches="tight", metadata={"Date": None})
        pyplot.close(figure)

    rows = [row for row in result["rows"] if "throughput" in row and not row["oversubscribed"]
            and not matrix.is_yardstick(row["name"])]
    if rows:
        figure, axes = pyplot.subplots(figsize=(7, 0.4 + 0.28 * len(rows)))
        _bars(axes, rows)
        save("rates", figure)
    base = next((row for row in result["rows"] if "latency" in row), None)
    if base:
        figure, axes = pyplot.subplots(figsize=(6, 4))
        _latencies(axes, base["latency"])
        save("latency", figure)
    return paths
