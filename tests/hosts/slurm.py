"""A Slurm cluster on the hosts of hosts.py: slurmctld on the first, a slurmd on each.

    with Hosts(["a", "b", "c"]) as hosts, Slurm(hosts, slots=4) as slurm:
        slurm.run(["srun", "-N3", "hostname"])

Needs slurmctld, slurmd and slurm-client.
"""
import os
import pathlib
import shutil
import subprocess
import time

NEEDED = ["slurmctld", "slurmd", "srun", "sbatch"]
CONF = """ClusterName=troupe
SlurmctldHost={first}({address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
ReturnToService=2
SlurmdTimeout=5
SlurmctldTimeout=5
KillWait=2
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
TmpFS=/tmp
SrunPortRange=22000-22999
{nodes}
PartitionName=all Nodes={names} Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""


def missing():
    absent = [name for name in NEEDED if not shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")]
    return "not installed: " + ", ".join(absent) if absent else ""


class Slurm:
    def __init__(self, hosts, slots):
        self.hosts, self.folder = hosts, pathlib.Path(hosts.folder) / "slurm"
        (self.folder / "state").mkdir(parents=True)
        nodes = "\n".join(f"NodeName={name} NodeAddr={hosts.address(name)} CPUs={slots} CoresPerSocket={slots} State=UNKNOWN" for name in hosts.names)
        conf = self.folder / "slurm.conf"
        conf.write_text(CONF.format(first=hosts.names[0], address=hosts.address(hosts.names[0]), folder=self.folder, nodes=nodes, names=",".join(hosts.names)))
        hosts.environment["SLURM_CONF"] = str(conf)
        self.daemons = {}

    def __enter__(self):
        self.start_controller()
        for name in self.hosts.names:
            (self.folder / f"spool-{name}").mkdir(exist_ok=True)
            self.daemons[name] = self.hosts.start(name, [self._path("slurmd"), "-D", "-N", name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while self.run(["sinfo", "-h", "-t", "idle", "-o", "%D"]).stdout.strip() != str(len(self.hosts.names)):
            if time.monotonic() > end:
                raise RuntimeError("the nodes are not idle:\n" + self.run(["sinfo", "-R"]).stdout + self.log())
            time.sleep(0.3)
        return self

    def __exit__(self, *_):
        self.run(["scancel", "--user", "root"])
        for daemon in self.daemons.values():
            daemon.kill()

    def start_controller(self):
        self.daemons["slurmctld"] = self.hosts.start(self.hosts.names[0], [self._path("slurmctld"), "-D"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def run(self, command, **options):
        """Runs a command of Slurm, or another, on the first host."""
        return self.hosts.run(self.hosts.names[0], command, **options)

    def log(self):
        return "".join(f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}" for log in sorted(self.folder.glob("*.log")))

    def _path(self, program):
        return shutil.which(program, path=self.hosts.environment["PATH"])
