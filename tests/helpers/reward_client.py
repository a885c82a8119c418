"""A server of rewards in a thread, and a client of it."""

import contextlib
import http.client
import json
import socket
import threading

from waiting import PATIENCE


class Client:
    def __init__(self, port, connections=None):
        self.port = port
        self.connections = connections

    def ask(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.read().decode()

    def post(self, path, content, **headers):
        status, text = self.ask("POST", path, content if isinstance(content, bytes) else json.dumps(content), **headers)
        return status, json.loads(text)

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)


@contextlib.contextmanager
def served(spec):
    """Yield a function that starts a server, with the connections of ``assay serve``, and returns a client."""
    import uvicorn

    from assay.adapters.connections import connection_class
    from assay.adapters.reward_server import reward_app

    servers = []

    def start(spec=spec, most=1000, answer_seconds=PATIENCE, **options):
        listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        protocol = connection_class(PATIENCE, answer_seconds)
        quiet = {"log_level": "error", "access_log": False, "timeout_graceful_shutdown": 5}
        config = uvicorn.Config(reward_app(spec, **options), http=protocol, limit_concurrency=most, **quiet)
        server, ready = uvicorn.Server(config), threading.Event()
        begin = server.startup

        async def startup(sockets=None):
            await begin(sockets=sockets)
            ready.set()

        server.startup = startup
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        servers.append((server, thread, listener))
        assert ready.wait(PATIENCE)
        return Client(listener.getsockname()[1], protocol)

    yield start
    for server, thread, listener in servers:
        server.should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive()
        listener.close()
