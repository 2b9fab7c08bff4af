"""Captures a PyTorch training script without a GPU: `python3 -m manyworlds.capture_torch --world 8 -o job.jsonl train.py`.

The result is a program (docs/programs.md) that sweeps simulate. docs/capture_torch.md says what is captured and how.
"""

recorder = None  # while a script runs, what records it


def step():
    """Says in a script that a step of training ends here; nothing outside a capture. Otherwise Optimizer.step() does."""
    if recorder is not None:
        recorder.storages.collect()
        recorder.marked()
