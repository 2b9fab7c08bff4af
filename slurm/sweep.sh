#!/bin/bash
# One life of a sweep: it runs until done or until the job's time is nearly over, then asks Slurm for another life.
# `manyworlds slurm SPEC` fills in what stands between @ signs; by hand, replace each. Submitted with --array=1-N,
# every task of the array computes one of @SHARDS@ shards.
#SBATCH --job-name=@NAME@
#SBATCH --output="@LOGS@/@OUTPUT@"
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@@MARGIN_S@
#@SBATCH@
set -u

# The program starts mpirun on the tasks of the job; with --srun it is srun that starts them.
command=(@COMMAND@)
run=@RUN@
margin_s=@MARGIN_S@ # what is left of the job's time when it stops
most_lives=100

if [ -n "${SLURM_ARRAY_TASK_ID:-}" ]; then
  run=$run.shards/$SLURM_ARRAY_TASK_ID-of-@SHARDS@
  command+=(--shard "$SLURM_ARRAY_TASK_ID/@SHARDS@")
fi

# Slurm's signal is the warning; where a site passes none on, the clock is.
ends_at() {
  local end=${SLURM_JOB_END_TIME:-}
  if [ -n "$end" ]; then echo "$end" && return; fi
  end=$(squeue -h -j "$SLURM_JOB_ID" -o %e 2>/dev/null)
  if [ -n "$end" ]; then date -d "$end" +%s 2>/dev/null; fi
}
end=$(ends_at)
if [ -n "$end" ]; then
  left_s=$((end - $(date +%s) - margin_s))
  command+=(--stop-after "$((left_s > 1 ? left_s : 1))s")
fi

gives_up_at=
"${command[@]}" -o "$run" &
process=$!
trap 'kill -USR1 $process; gives_up_at=$((SECONDS + margin_s * 3 / 4))' USR1
wait $process
code=$?
if [ "$code" -gt 128 ] && [ -n "$gives_up_at" ]; then # the signal ended the wait; what runs may finish
  while kill -0 $process 2>/dev/null && [ "$SECONDS" -lt "$gives_up_at" ]; do sleep 1; done
  if kill -0 $process 2>/dev/null; then code=75; else wait $process; code=$?; fi
fi

if [ "$code" -eq 75 ]; then
  printf 'not finished; this script again goes on, or: %q resume %q\n' @PROGRAM@ "$run"
  if [ "${SLURM_RESTART_COUNT:-0}" -lt "$most_lives" ]; then scontrol requeue "$SLURM_JOB_ID"; fi
fi
exit "$code"
