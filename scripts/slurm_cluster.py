"""A Slurm cluster of this machine alone, for tests: munge, a controller and nodes that all run here, in one folder.

Needs slurmctld, slurmd, slurm-client and munge of Debian; no cgroups, no accounting, no service and no file outside the folder.
"""
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "sinfo")


class ClusterError(Exception):
    """Slurm does not do what it is to do."""


class ClusterUnavailable(ClusterError):
    """Its daemons do not run on this machine, as in a container that forbids them."""


def which(program):
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def missing():
    """The programs that are not installed."""
    return [program for program in PROGRAMS if not which(program)]


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def processes():
    """Numbers of all there are."""
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


class SlurmCluster:
    def __init__(self, folder, nodes):
        """nodes: of one processor each, named n1, n2, ..."""
        self.folder = pathlib.Path(folder) / "slurm"
        self.nodes = [f"n{i + 1}" for i in range(nodes)]
        self.processes = {}
        for name in ("munge", "state", "log", *(f"spool/{node}" for node in self.nodes)):
            (self.folder / name).mkdir(parents=True)
        self.write_configuration()
        self.environment = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}
        try:
            self.start_daemons()
        except ClusterError as error:
            self.stop()
            raise ClusterUnavailable(str(error)) from error

    def start_daemons(self):
        munge = self.folder / "munge"
        munge.chmod(0o755)
        (munge / "key").write_bytes(os.urandom(1024))
        (munge / "key").chmod(0o400)
        # --force: the folder is a temporary one, whose parents others may write to.
        self.start("munged", "--foreground", "--force", f"--key-file={munge}/key", f"--socket={munge}/socket",
                   f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed")
        self.wait_for(lambda: (munge / "socket").exists(), "munged")
        self.start("slurmctld", "-D", "-c")
        for node in self.nodes:
            self.start_node(node)
        self.wait_for(lambda: self.ask("sinfo", "-h", "-N", "-o", "%T").split() == ["idle"] * len(self.nodes), "the nodes")

    def write_configuration(self):
        host = socket.gethostname().split(".")[0]
        user = pwd.getpwuid(os.geteuid()).pw_name
        controller, *ports = free_ports(1 + len(self.nodes))
        nodes = "\n".join(f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1"
                          for node, port in zip(self.nodes, ports))
        (self.folder / "slurm.conf").write_text(f"""\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={self.folder}/munge/socket
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/%n.pid
SlurmdSpoolDir={self.folder}/spool/%n
StateSaveLocation={self.folder}/state
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
SlurmdParameters=config_overrides
KillWait=5
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
""")

    def start(self, program, *arguments, name=None):
        log = open(self.folder / "log" / (name or program), "a")
        self.processes[name or program] = subprocess.Popen([which(program), *arguments], env=self.environment, stdout=log,
                                                           stderr=log, cwd=self.folder, start_new_session=True)

    def start_node(self, node):
        self.start("slurmd", "-D", "-N", node, name=node)

    def wait_for(self, reached, what, seconds=60):
        end = time.monotonic() + seconds
        while not reached():
            if time.monotonic() > end:
                logs = "".join(f"{log.name}: {log.read_text()[-500:]}\n" for log in (self.folder / "log").iterdir())
                raise ClusterError(f"slurm_cluster: {what} did not start:\n{logs}")
            time.sleep(0.2)

    def run(self, program, *arguments, environment=None):
        return subprocess.run([which(program), *arguments], env={**self.environment, **(environment or {})},
                              capture_output=True, text=True, cwd=self.folder)

    def ask(self, program, *arguments):
        """What a command prints; empty where it fails, as for a job that is gone."""
        done = self.run(program, *arguments)
        return done.stdout.strip() if done.returncode == 0 else ""

    def submit(self, script, environment, *arguments):
        """Of a batch script: the number of the job."""
        done = self.run("sbatch", "--parsable", *arguments, str(script), environment=environment)
        if done.returncode:
            raise ClusterError("slurm_cluster: " + done.stderr)
        return done.stdout.strip()

    def state(self, job):
        """PENDING, RUNNING, ...; empty once it has left the queue."""
        state = self.ask("squeue", "-h", "-j", job, "-o", "%T")
        return "" if state in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL") else state

    def restarts(self, job):
        """How often Slurm has put it back into the queue."""
        found = re.search(r"Restarts=(\d+)", self.ask("scontrol", "show", "job", job))
        return int(found.group(1)) if found else 0

    def release(self, job):
        """Starts what was put back into the queue at once; Slurm would wait two minutes."""
        self.run("scontrol", "update", f"jobid={job}", "StartTime=now")

    def lose_node(self, node):
        """Kills a node's daemon and all that it runs, as when a machine loses power."""
        daemon = self.processes.pop(node)
        sessions = set(self.sessions_of(node))
        daemon.kill()
        daemon.wait()
        for session in sessions:
            self.kill_session(session)
        # What the controller finds out by itself after SlurmdTimeout, which it looks at every half minute.
        self.run("scontrol", "update", f"nodename={node}", "state=down", "reason=lost")

    def sessions_of(self, node):
        """Of what jobs run on the node, by the environment that Slurm gives them."""
        marks = {f"SLURMD_NODENAME={node}".encode(), f"SLURM_CONF={self.folder}/slurm.conf".encode()}
        for pid in processes():
            try:
                if marks <= set(pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")):
                    yield os.getsid(pid)
            except OSError:
                pass  # has ended, or is another user's

    @staticmethod
    def kill_session(session):
        """A step's daemon is the leader of its job's session."""
        for pid in processes():
            try:
                if os.getsid(pid) == session:
                    os.kill(pid, signal.SIGKILL)
            except OSError:
                pass  # has ended

    def stop(self):
        for name in reversed(list(self.processes)):
            process = self.processes[name]
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
