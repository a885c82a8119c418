"""Clients of ``assay serve`` for a while: at a steady rate, among clients that are slow, cut off or send large bodies; the server is
killed halfway and started again. Prints as JSON what became of the requests.

Each request has an answer of its own, so that an answer given to another one is noticed. A request without an answer has an error,
and is sent again.

Usage: reward_clients.py SPEC CLIENTS RATE SECONDS
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

LARGE = 10_000_000
"""Bytes of a large body."""

PATIENCE = 30
"""Seconds after which a request counts as lost."""


class Server:
    """The server, in a process of its own, on one port for all its lives."""

    def __init__(self, spec):
        self.spec, self.port, self.process, self.downtime = spec, 0, None, 0.0

    async def start(self):
        command = [sys.executable, "-m", "assay", "serve", self.spec, "--port", str(self.port)]
        self.process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
        said = (await self.process.stderr.readline()).decode()
        self.port = int(said.rsplit(":", 1)[1])

    async def kill_and_start(self):
        began = time.perf_counter()
        self.process.kill()
        await self.process.wait()
        await self.start()
        self.downtime += time.perf_counter() - began

    async def stop(self):
        """Return the CPU seconds of its last life and what it said."""
        seconds = cpu_seconds(self.process.pid)
        self.process.send_signal(signal.SIGTERM)
        said = (await self.process.stderr.read()).decode()
        await self.process.wait()
        return seconds, said

    async def connected(self):
        """Return a connection, as soon as the server takes one."""
        while True:
            try:
                return await asyncio.open_connection("127.0.0.1", self.port)
            except OSError:
                await asyncio.sleep(0.05)


def cpu_seconds(process):
    """Return the CPU time of a process, on Linux."""
    fields = Path(f"/proc/{process}/stat").read_text("ascii").rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def request(body, size=None):
    head = f"POST /reward HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body) if size is None else size}\r\n\r\n"
    return head.encode() + body


async def answered(reader):
    """Return the status and the body of an answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    size = next(int(line.split(":")[1]) for line in lines if line.startswith("content-length:"))
    return int(lines[0].split()[1]), await reader.readexactly(size)


class Clients:
    def __init__(self, server, rate, clients, ends):
        self.server, self.every, self.clients, self.ends = server, clients / rate, clients, ends
        self.outcomes, self.latencies, self.asked = Counter(), [], 0

    async def steady(self, at):
        """Send a request every so often over one connection; an error closes it, and the request is sent again."""
        connection, number, due = None, 0, time.perf_counter() + self.every * at / self.clients
        while time.perf_counter() < self.ends:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            due += self.every
            number += 1
            gold = at * 1_000_000 + number
            right = number % 3 > 0
            self.asked += 1
            body = json.dumps({"completion": f"it is {gold if right else 'no'}.", "answer": str(gold)}).encode()
            while True:
                connection = connection or await self.server.connected()
                began = time.perf_counter()
                try:
                    connection[1].write(request(body))
                    async with asyncio.timeout(PATIENCE):
                        status, answer = await answered(connection[0])
                except TimeoutError:
                    self.outcomes["lost"] += 1
                    break
                except (OSError, asyncio.IncompleteReadError):
                    self.outcomes["errors"] += 1
                    connection[1].close()
                    connection = None
                    continue
                self.latencies.append(time.perf_counter() - began)
                result = json.loads(answer)
                feedback = "" if right else f'has: does not contain "{gold}"'
                expected = (200, float(right), feedback, None)
                given = status, result.get("reward"), result.get("feedback"), result.get("error")
                self.outcomes["answers" if given == expected else "wrong"] += 1
                break

    async def large(self):
        """Send a large body now and then."""
        body = json.dumps({"completion": "4" * LARGE, "answer": "4"}).encode()
        while time.perf_counter() < self.ends:
            reader, writer = await self.server.connected()
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                writer.write(request(body))
                await writer.drain()
                status, answer = await answered(reader)
                self.outcomes["large" if (status, json.loads(answer)["reward"]) == (200, 1.0) else "wrong"] += 1
            writer.close()
            await asyncio.sleep(2)

    async def slow(self):
        """Send a body that takes seconds to come."""
        body = json.dumps({"completion": "it is 4", "answer": "4"}).encode()
        while time.perf_counter() < self.ends:
            reader, writer = await self.server.connected()
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                writer.write(request(b"", len(body)))
                for byte in body:
                    writer.write(bytes([byte]))
                    await writer.drain()
                    await asyncio.sleep(0.1)
                status, answer = await answered(reader)
                self.outcomes["slow" if (status, json.loads(answer)["reward"]) == (200, 1.0) else "wrong"] += 1
            writer.close()

    async def cut(self):
        """Go away in the middle of a body."""
        while time.perf_counter() < self.ends:
            _, writer = await self.server.connected()
            writer.write(request(b'{"completion"', 100))
            await asyncio.sleep(0.05)
            writer.transport.abort()
            self.outcomes["cut"] += 1


async def run(spec, clients, rate, seconds):
    server = Server(spec)
    await server.start()
    began = time.perf_counter()
    load = Clients(server, rate, clients, began + seconds)
    steady = asyncio.gather(*(load.steady(at) for at in range(clients)))
    others = asyncio.gather(load.large(), *(load.slow() for _ in range(4)), *(load.cut() for _ in range(2)))
    await asyncio.sleep(seconds / 2)
    await server.kill_and_start()
    await steady
    took = time.perf_counter() - began
    await others
    cpu, said = await server.stop()
    latencies = sorted(load.latencies)
    at = {f"p{share}": latencies[len(latencies) * share // 100] for share in (50, 99)}
    return {
        "asked": load.asked,
        "seconds": took,
        "downtime": server.downtime,
        "said": said,
        "cpu": cpu / (seconds / 2 - server.downtime),
        **at,
        **load.outcomes,
    }


if __name__ == "__main__":
    path, *numbers = sys.argv[1:]
    sys.stdout.write(json.dumps(asyncio.run(run(path, *map(int, numbers)))))
