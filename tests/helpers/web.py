"""A web server on loopback that has what it is given, understands ranges, and misbehaves where it is told to."""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Web:
    """The server.

    Args:
        files: Bytes by path; a number instead is the status of a refusal, None never an answer, a list pieces that come slowly.
    """

    def __init__(self, files):
        self.files, self.requests, self.ending = files, [], threading.Event()
        web = self

        class Handler(_Handler):
            owner = web

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.host = f"127.0.0.1:{self._server.server_address[1]}"
        self.url = f"http://{self.host}"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_PUT(self):
        self.do_GET()

    def do_GET(self):
        self.owner.requests.append((self.command, self.path, self.headers.get("range")))
        found = self.owner.files.get(self.path.partition("?")[0], 404)
        if found is None:
            self.owner.ending.wait(60)
            self.close_connection = True
            return
        if isinstance(found, int):
            self._head(found, 0)
            return
        whole = b"".join(found) if isinstance(found, list) else found
        first, last = self._range(len(whole))
        extra = {"content-range": f"bytes {first}-{last}/{len(whole)}"} if self.headers.get("range") else {}
        self._head(206 if extra else 200, last - first + 1, extra)
        if self.command == "GET":
            self._send(whole[first : last + 1], slowly=isinstance(found, list))

    def _send(self, content, *, slowly):
        if not slowly:
            self.wfile.write(content)
            return
        for start in range(0, len(content), 1000):
            self.wfile.write(content[start : start + 1000])
            if self.owner.ending.wait(0.05):
                return

    def _range(self, size):
        given = self.headers.get("range")
        if not given:
            return 0, size - 1
        first, _, last = given.removeprefix("bytes=").partition("-")
        if not first:
            return max(0, size - int(last)), size - 1
        return int(first), min(int(last or size - 1), size - 1)

    def _head(self, status, length, extra=()):
        self.send_response(status)
        self.send_header("content-length", str(length))
        self.send_header("last-modified", time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(0)))
        for name, value in dict(extra).items():
            self.send_header(name, value)
        self.end_headers()
