"""Pictures of a run, with matplotlib. Each function returns the axes that it drew on."""

import textwrap

PARTS = ("forward", "backward", "recompute", "optimizer", "kernels", "host", "slowed", "exposed_tp", "exposed_dp", "exposed_pp",
         "exposed_cp", "exposed_ep", "exposed_other", "exposed_offload", "bubble", "stall")
COLOURS = ("#1f77b4", "#4a98c9", "#9ecae1", "#08519c", "#17becf", "#7f7f7f", "#bdbdbd", "#d62728", "#ff7f0e", "#e7ba52", "#9467bd",
           "#e377c2", "#bcbd22", "#8c564b", "#2ca02c", "#98df8a")
SHORT = {"strategy.": "", "cluster.": "", "model.": ""}


def label(row, axes):
    """An experiment in a few words: the values of the axes that tell it from others."""
    words = []
    for axis in axes:
        name = axis
        for long, short in SHORT.items():
            name = name.replace(long, short) if name.startswith(long) else name
        words.append(f"{name}={row[axis]}")
    return " ".join(words) or f"experiment {row['id']}"


class Plots:
    """What `run.plot` offers."""

    def __init__(self, run):
        self._run = run

    def _axes(self, axes, **figure):
        if axes is not None:
            return axes
        from matplotlib import pyplot

        return pyplot.subplots(**figure)[1]

    def _telling(self, frame):
        axes = [axis for axis in self._run.axes if axis in frame and frame[axis].astype(str).nunique() > 1]
        return [axis for axis in axes if not any(axis.startswith(other + ".") for other in axes)]

    def breakdown(self, k=10, by="tokens_per_s_per_gpu", ax=None):
        """Bars of the best experiments' step times, by what they are spent on; the interval of each as a line."""
        best = self._run.top(k, by)
        axes = self._axes(ax, figsize=(9, 1.8 + 0.5 * len(best)), layout="constrained")
        labels = [textwrap.fill(f"{row['id']}: {label(row, self._telling(best))}", 44, break_long_words=False) for _, row in best.iterrows()]
        left = [0.0] * len(best)
        for part in PARTS:
            if f"{part}_s" not in best or best[f"{part}_s"].fillna(0).max() <= 0:
                continue
            widths = best[f"{part}_s"].fillna(0).tolist()
            axes.barh(labels, widths, left=left, label=part, color=COLOURS[PARTS.index(part)])
            left = [a + b for a, b in zip(left, widths)]
        if "step_time_low_s" in best:
            low = (best["step_time_s"] - best["step_time_low_s"]).clip(lower=0)
            high = (best["step_time_high_s"] - best["step_time_s"]).clip(lower=0)
            axes.errorbar(best["step_time_s"], labels, xerr=[low, high], fmt="none", ecolor="black", elinewidth=0.8, capsize=2)
        axes.invert_yaxis()
        axes.set_xlabel("step time, s (lines: 80 % interval)")
        axes.tick_params(axis="y", labelsize="small")
        axes.legend(fontsize="small", ncols=5, loc="upper center", bbox_to_anchor=(0.3, -0.25))
        return axes

    def throughput_against_memory(self, ax=None):
        """Every experiment that ran: tokens/s/GPU against peak memory, with the Pareto front as a line."""
        frame = self._run.frame()
        ran = frame[frame["status"] == "ran"].sort_values(["memory_peak_bytes", "tokens_per_s_per_gpu"], ascending=[True, False])
        axes = self._axes(ax, layout="constrained")
        gib = ran["memory_peak_bytes"] / 2**30
        axes.scatter(gib, ran["tokens_per_s_per_gpu"], s=16)
        front = ran["tokens_per_s_per_gpu"] > ran["tokens_per_s_per_gpu"].cummax().shift(fill_value=-1)
        axes.step(gib[front], ran["tokens_per_s_per_gpu"][front], where="post", label="Pareto front")
        axes.set_xlabel("peak memory, GiB")
        axes.set_ylabel("tokens/s/GPU")
        axes.legend()
        return axes

    def axis(self, name, column="tokens_per_s_per_gpu", ax=None):
        """The best value of a column for each value of an axis."""
        frame = self._run.frame()
        ran = frame[frame["status"] == "ran"]
        smaller = frame.attrs["units"][column] in ("s", "ps", "bytes", "J", "USD")
        best = ran.groupby(name)[column].agg("min" if smaller else "max")
        axes = self._axes(ax, layout="constrained")
        axes.bar([str(value) for value in best.index], best)
        axes.set_xlabel(name)
        axes.set_ylabel(f"{column} of the best")
        return axes
