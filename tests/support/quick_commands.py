"""``lance-sql`` for the blocks of pages: processes that are forked where everything is imported already.

A page has dozens of commands, and each would import the same modules for half a second. Tests of the command
line start it as users do.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

_MOST_BYTES = 1 << 17
#: A command that hands its arguments, environment and open files over, and waits.
_COMMAND = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
    server.connect({address!r})
    request = [sys.argv[1:], os.getcwd(), dict(os.environ)]
    socket.send_fds(server, [json.dumps(request).encode()], [0, 1, 2])
    sys.exit(int(server.recv(100) or 1))
"""


@functools.cache
def folder() -> Path:
    """A folder with the command, for PATH."""
    made = Path(tempfile.mkdtemp(prefix="commands"))
    address = str(made / "socket")
    command = made / "lance-sql"
    command.write_text(_COMMAND.format(python=sys.executable, address=address))
    command.chmod(0o755)
    server = subprocess.Popen([sys.executable, __file__, address], stdout=subprocess.PIPE)
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    server.stdout.close()

    @atexit.register
    def end() -> None:
        server.kill()
        server.wait()
        shutil.rmtree(made, ignore_errors=True)

    return made


def _run(connection: socket.socket) -> None:
    """The command of a request, in this process."""
    request, files, _, _ = socket.recv_fds(connection, _MOST_BYTES, 3)
    arguments, directory, environment = json.loads(request)
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["lance-sql", *arguments]
    from lance_sql.cli import main

    code: object = 1
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    connection.send(str(code if isinstance(code, int) else 0 if code is None else 1).encode())


def serve(address: str) -> None:
    import datafusion  # noqa: F401
    import duckdb  # noqa: F401
    import sqlglot  # noqa: F401

    import lance_sql.cli.app  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nothing waits for the processes
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(address)
        server.listen()
        print("ready", flush=True)
        while True:
            connection, _ = server.accept()
            with connection:
                if os.fork() == 0:
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    try:
                        _run(connection)
                    finally:
                        os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
