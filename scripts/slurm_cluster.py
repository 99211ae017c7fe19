"""A Slurm cluster on this machine alone, for tests: munge, a controller and nodes, with all files in one folder.

Needs Debian's slurmctld, slurmd, slurm-client and munge, but no cgroups, accounting, system service or file outside
the folder.
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
    """Slurm does not behave as expected."""


class ClusterUnavailable(ClusterError):
    """Slurm's daemons cannot run on this machine, for example in a container that forbids it."""


def which(program):
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def missing():
    """Returns the needed programs that are not installed."""
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
    """Returns the ids of all processes."""
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


class SlurmCluster:
    def __init__(self, folder, nodes):
        """nodes: number of nodes, which have one processor each and are named n1, n2, ..."""
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
        # --force: munged otherwise refuses the folder, since others may write to its parents.
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
        """Returns the output of a command; empty if it fails, as for a job that no longer exists."""
        done = self.run(program, *arguments)
        return done.stdout.strip() if done.returncode == 0 else ""

    def submit(self, script, environment, *arguments):
        """Submits a batch script and returns the job's number."""
        done = self.run("sbatch", "--parsable", *arguments, str(script), environment=environment)
        if done.returncode:
            raise ClusterError("slurm_cluster: " + done.stderr)
        return done.stdout.strip()

    def state(self, job):
        """Returns PENDING, RUNNING, ...; empty if the job has left the queue."""
        state = self.ask("squeue", "-h", "-j", job, "-o", "%T")
        return "" if state in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL") else state

    def restarts(self, job):
        """Returns how often Slurm has requeued the job."""
        found = re.search(r"Restarts=(\d+)", self.ask("scontrol", "show", "job", job))
        return int(found.group(1)) if found else 0

    def release(self, job):
        """Starts a requeued job at once; Slurm would wait two minutes."""
        self.run("scontrol", "update", f"jobid={job}", "StartTime=now")

    def lose_node(self, node):
        """Kills a node's daemon and all processes of its jobs, as if the machine lost power."""
        daemon = self.processes.pop(node)
        sessions = set(self.sessions_of(node))
        daemon.kill()
        daemon.wait()
        for session in sessions:
            self.kill_session(session)
        # The controller would notice the loss itself after SlurmdTimeout, which it checks every half minute.
        self.run("scontrol", "update", f"nodename={node}", "state=down", "reason=lost")

    def sessions_of(self, node):
        """Yields the sessions of the jobs on the node, which are found by the environment that Slurm gives them."""
        marks = {f"SLURMD_NODENAME={node}".encode(), f"SLURM_CONF={self.folder}/slurm.conf".encode()}
        for pid in processes():
            try:
                if marks <= set(pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")):
                    yield os.getsid(pid)
            except OSError:
                pass  # the process has ended, or belongs to another user

    @staticmethod
    def kill_session(session):
        """Kills all processes of a session, which a step's daemon leads."""
        for pid in processes():
            try:
                if os.getsid(pid) == session:
                    os.kill(pid, signal.SIGKILL)
            except OSError:
                pass  # the process has ended

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
