#!/bin/bash
# After an array of shards, whatever became of it: joins what there is and ranks it. `manyworlds slurm SPEC --array N`
# fills in what stands between @ signs; by hand, replace each.
#SBATCH --job-name=@NAME@-merge
#SBATCH --output="@LOGS@/@OUTPUT@"
#SBATCH --nodes=1
#SBATCH --ntasks=1
#@SBATCH@
set -u
shopt -s nullglob

run=@RUN@
scripts=@SCRIPTS@
shards=("$run".shards/*-of-@SHARDS@)
if [ ${#shards[@]} -eq 0 ]; then
  printf 'no shard has begun; first: sbatch %q\n' "$scripts/sweep.sh" >&2
  exit 75
fi
@PROGRAM@ merge "${shards[@]}" -o "$run"
code=$?
case $code in
  0 | 3 | 75) @PROGRAM@ report "$run" ;; # of what there is
esac
if [ "$code" -eq 75 ]; then
  printf 'again: sbatch --array=SHARDS %q, and when that has ended sbatch %q\n' "$scripts/sweep.sh" "$scripts/merge.sh"
fi
exit "$code"
