"""Hosts on one machine: namespaces of network, UTS, mounts, processes and IPC with their own /tmp, /proc and /dev/shm, connected by a bridge, each with an sshd.

    with Hosts(["a", "b", "c"]) as hosts:
        hosts.run("a", ["hostname"])

Needs root, iproute2, openssh-server and openssh-client. Host i has the address 10.77.0.(i + 1). The file system is otherwise shared.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

NEEDED = ["ip", "unshare", "nsenter", "sshd", "ssh", "ssh-keygen", "mpirun"]
INIT = """
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /dev/shm
mkdir -p /run/sshd
hostname "$1"
ip link set lo up
trap : TERM INT
echo ready
while :; do sleep 1 & wait; done
"""


def missing():
    """Why hosts cannot be made here, or ""."""
    if os.geteuid() != 0:
        return "root is needed"
    absent = [name for name in NEEDED if not shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")]
    if absent:
        return "not installed: " + ", ".join(absent)
    tried = subprocess.run(["unshare", "-n", "-u", "-m", "-p", "-i", "--fork", "true"], capture_output=True, text=True)
    return tried.stderr.strip() if tried.returncode else ""


class Hosts:
    def __init__(self, names):
        self.names = names
        self.folder = tempfile.mkdtemp(prefix="troupe-hosts-", dir="/var/tmp")  # /tmp is the host's own
        self.inits, self.daemons = {}, []
        self.bridge = f"tb{os.getpid() % 100000}"
        self.environment = dict(os.environ, PATH=f"{self.folder}/bin:{os.environ['PATH']}:/usr/sbin:/sbin")

    def __enter__(self):
        if self.inits:  # they are there already
            return self
        try:
            self._keys()
            # The bridge is in a namespace of its own, so that no rule of this machine's network applies.
            self.switch = self._init("switch")
            self._enter("switch", ["ip", "link", "add", self.bridge, "type", "bridge"])
            self._enter("switch", ["ip", "link", "set", self.bridge, "up"])
            for name in self.names:
                self._init(name)
                self._link(name)
                self._sshd(name)
            self._wait_for_sshd()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for daemon in self.daemons:
            daemon.kill()
        for init in self.inits.values():
            init.kill()  # the kernel ends all processes of its namespace
            init.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def address(self, name):
        return f"10.77.0.{self.names.index(name) + 1}"

    def run(self, name, command, **options):
        """Runs a command on a host to its end."""
        return subprocess.run(self.command(name, command), env=self.environment, text=True, capture_output=True, **options)

    def start(self, name, command, **options):
        return subprocess.Popen(self.command(name, command), env=self.environment, text=True, **options)

    def command(self, name, command):
        """The words that run a command on a host, in the working directory of this process."""
        return ["nsenter", "-t", str(self._pid(name)), "-n", "-u", "-m", "-p", "-i", f"--wd={os.getcwd()}", "--"] + command

    def processes(self, name):
        """The command lines of a host's processes, without its init and sshd."""
        listed = self.run(name, ["ps", "-eo", "pid=,ppid=,args="]).stdout.splitlines()
        ours = ("ps -eo", "sleep 1", "bash -c", "sshd", "-bash -c")
        return [line for line in listed if not line.split(None, 2)[2].startswith(ours)]

    def listening(self, name):
        """(address, port) of each listening TCP socket of a host."""
        found = set()
        for line in self.run(name, ["ss", "-Hltn"]).stdout.splitlines():
            address, _, port = line.split()[3].rpartition(":")
            found.add((address, int(port)))
        return found

    def cut(self, name):
        self._enter("switch", ["ip", "link", "set", f"to-{name}", "down"])

    def join(self, name):
        self._enter("switch", ["ip", "link", "set", f"to-{name}", "up"])

    def received_bytes(self, name):
        """Bytes that a host has received from the others."""
        return int(self.run(name, ["cat", "/sys/class/net/eth0/statistics/rx_bytes"]).stdout or 0)

    def _pid(self, name):
        children = pathlib.Path(f"/proc/{self.inits[name].pid}/task/{self.inits[name].pid}/children").read_text().split()
        return int(children[0])

    def _enter(self, name, words):
        subprocess.run(["nsenter", "-t", str(self._pid(name)), "-n", "--"] + words, check=True, env=self.environment)

    def _init(self, name):
        init = subprocess.Popen(["unshare", "-n", "-u", "-m", "-p", "-i", "--fork", "--kill-child", "bash", "-c", INIT, "init", name], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                text=True, env=self.environment, start_new_session=True)
        self.inits[name] = init
        if init.stdout.readline().strip() != "ready":
            raise RuntimeError(f"host {name} did not start")
        return init

    def _link(self, name):
        self._enter("switch", ["ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", str(self._pid(name))])
        self._enter("switch", ["ip", "link", "set", f"to-{name}", "master", self.bridge, "up"])
        self._enter(name, ["ip", "address", "add", f"{self.address(name)}/24", "dev", "eth0"])
        self._enter(name, ["ip", "link", "set", "eth0", "up"])

    def _keys(self):
        folder = pathlib.Path(self.folder)
        for key in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)], check=True)
        shutil.copy(folder / "user.pub", folder / "authorized")
        (folder / "sshd_config").write_text(
            f"HostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nPidFile none\nPasswordAuthentication no\nMaxStartups 100\n")
        (folder / "ssh_config").write_text(
            f"Host *\n  IdentityFile {folder}/user\n  IdentitiesOnly yes\n  UserKnownHostsFile /dev/null\n  StrictHostKeyChecking no\n  LogLevel ERROR\n  User root\n")
        (folder / "bin").mkdir()
        wrapper = folder / "bin" / "ssh"
        wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/ssh_config "$@"\n')
        wrapper.chmod(0o755)

    def _sshd(self, name):
        self.daemons.append(self.start(name, [shutil.which("sshd", path=self.environment["PATH"]), "-D", "-f", f"{self.folder}/sshd_config"], stderr=subprocess.DEVNULL))

    def _wait_for_sshd(self):
        end = time.monotonic() + 60
        for name in self.names:
            while self.run(self.names[0], ["ssh", "-o", "BatchMode=yes", self.address(name), "true"]).returncode:
                if time.monotonic() > end:
                    raise RuntimeError(f"the sshd of host {name} does not answer")
                time.sleep(0.2)


def kill_group(process):
    os.killpg(process.pid, signal.SIGKILL)
