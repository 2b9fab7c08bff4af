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
  echo "no shard has begun; submit $scripts/sweep.sh first" >&2
  exit 75
fi
@PROGRAM@ merge "${shards[@]}" -o "$run"
code=$?
case $code in
  0 | 3) @PROGRAM@ top "$run" -k 100 >"$run/top.txt" ;; # a report of the run takes the place of this line
  75) echo "again: sbatch --array=MISSING $scripts/sweep.sh, and when that has ended sbatch $scripts/merge.sh" ;;
esac
exit "$code"
