"""A Slurm of one's own for the length of a test: munged, slurmctld and slurmd of a temporary folder, on this machine.

Works as root and as an ordinary user, touches nothing outside its folder, and leaves no process behind."""

import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from program import PATIENCE_S

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol")
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
OVER = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE"}

# cred_expire is how long a launch may take from srun to slurmd, which is seconds on a busy machine, and also how long a
# requeued job waits. config_overrides lets a node have more CPUs than the machine.
CONFIGURATION = """
ClusterName=throwaway
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=20
CredType=cred/munge
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
SchedulerParameters=sched_interval=1,batch_sched_delay=0,bf_interval=1
MpiDefault=none
MaxArraySize={max_array_size}
ReturnToService=2
KillWait=5
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={node_port} CPUs={cpus} State=UNKNOWN
PartitionName=main Nodes=n1 Default=YES MaxTime=INFINITE State=UP
"""


def missing():
    """The first program that a Slurm needs and this machine has not, or None."""
    return next((name for name in NEEDED if shutil.which(name, path=PATH) is None), None)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def alive(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class ThrowawaySlurm:
    def __init__(self, cpus=8, max_array_size=1001):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-slurm-"))
        self.environment = {**{name: value for name, value in os.environ.items() if not name.startswith("SLURM")},
                            "PATH": PATH, "SLURM_CONF": str(self.folder / "slurm.conf")}
        try:
            self._start(cpus, max_array_size)
        except BaseException:
            self.stop()
            raise

    def _start(self, cpus, max_array_size):
        for name in ("munge", "state", "spool"):
            (self.folder / name).mkdir(mode=0o700)
        munge = self.folder / "munge"
        (munge / "key").touch(mode=0o600)
        (munge / "key").write_bytes(random.randbytes(128))
        self._daemon("munged", "--force", f"--key-file={munge}/key", f"--socket={munge}/socket",
                     f"--pid-file={self.folder}/munged.pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed")
        port, node_port = free_ports(2)
        user = subprocess.run(["id", "-un"], check=True, capture_output=True, text=True).stdout.strip()
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(
            folder=self.folder, host=socket.gethostname().split(".")[0], port=port, node_port=node_port, user=user,
            cpus=cpus, max_array_size=max_array_size))
        self._daemon("slurmctld", "-c")
        self._daemon("slurmd", "-N", "n1")
        self.wait_for(lambda: self.run("sinfo", "-h", "-N", "-t", "idle", "-o", "%N", check=False) == "n1", 60)

    def _daemon(self, *words):
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=1200,
                              stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise RuntimeError(f"{words[0]}: exit {done.returncode}\n{done.stdout}{done.stderr}")

    def stop(self):
        self.run("scancel", "--full", "--me", check=False)
        for name in ("slurmd", "slurmctld", "munged"):
            file = self.folder / f"{name}.pid"
            if not file.exists():
                continue
            process = int(file.read_text())
            for number in (signal.SIGTERM, signal.SIGKILL):
                if alive(process):
                    os.kill(process, number)
                    self._until(lambda: not alive(process), 10)
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *words, check=True, cwd="/"):
        done = subprocess.run([*map(str, words)], env=self.environment, cwd=cwd, capture_output=True, text=True,
                              timeout=1200, stdin=subprocess.DEVNULL)
        if check and done.returncode != 0:
            raise AssertionError(f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout.strip()

    def submit(self, *words, cwd="/"):
        return self.run("sbatch", "--parsable", *words, cwd=cwd)

    def job(self, number):
        """What scontrol says of a job (of an array: of each of its tasks), one mapping each."""
        text = self.run("scontrol", "-o", "show", "job", number)
        return [dict(re.findall(r"(\w+)=(\S*)", line)) for line in text.splitlines()]

    def state(self, number):
        return self.job(number)[0]["JobState"]

    def wait(self, number, seconds=PATIENCE_S):
        """Until all of the job is over; its descriptions then."""
        jobs = []
        def over():
            jobs[:] = self.job(number)
            return all(job["JobState"] in OVER for job in jobs)
        self.wait_for(over, seconds, lambda: jobs)
        return jobs

    def wait_for(self, condition, seconds, tell=lambda: ""):
        if not self._until(condition, seconds):
            logs = "".join(path.read_text()[-2000:] for path in self.folder.glob("*.log"))
            raise AssertionError(f"not so after {seconds} s: {tell()}\n{logs}")

    @staticmethod
    def _until(condition, seconds):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                return False
            time.sleep(0.2)
        return True
