"""A standalone master of Spark and its workers, as processes of this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark


@dataclass
class Cluster:
    """The address of the master, and the processes of the workers, in the order of their hosts."""

    master: str
    workers: list[subprocess.Popen[bytes]]


@contextmanager
def standalone_cluster(
    folder: Path, hosts: Sequence[str] = ("127.0.0.1", "127.0.0.1"), settings: Sequence[str] = ()
) -> Iterator[Cluster]:
    """A cluster with a worker of one core for each host; ``settings`` are Java properties of the processes.

    Every address that starts with 127 is this machine, and Spark takes two of them for two hosts.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    address = f"spark://127.0.0.1:{port}"
    started: list[subprocess.Popen[bytes]] = []

    def start(host: str, *command: str) -> subprocess.Popen[bytes]:
        options = " ".join(f"-D{setting}" for setting in settings)
        process = subprocess.Popen(
            [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), *command, "--webui-port", "0"],
            env={
                **os.environ,
                "SPARK_LOCAL_IP": host,
                "SPARK_MASTER_OPTS": options,
                "SPARK_WORKER_OPTS": options,
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        started.append(process)
        return process

    try:
        start(
            "127.0.0.1", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port)
        )
        workers = []
        for number, host in enumerate(hosts):
            room = ["--cores", "1", "--memory", "2g", "--work-dir", str(folder / f"worker-{number}")]
            worker = "org.apache.spark.deploy.worker.Worker"
            workers.append(start(host, worker, "--host", host, *room, address))
        yield Cluster(address, workers)
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
