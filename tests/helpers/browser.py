"""Chromium without a window, driven through a pipe by its DevTools protocol: https://chromedevtools.github.io/devtools-protocol/."""

import base64
import json
import os
import select
import shutil
import subprocess
import time

from waiting import PATIENCE

__all__ = ["CHROMIUM", "Browser"]

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
"""The program; None where it is not installed."""

_SECONDS = PATIENCE

_FLAGS = (
    "--headless=new",
    "--no-sandbox",  # without it Chromium refuses to run as root, as in a container
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-pipe",
)

_KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowLeft": 37, "ArrowRight": 39}


class Browser:
    """One page of a browser.

    Attributes:
        events: What the browser told since the page was opened, as pairs of a name and its parameters.
    """

    def __init__(self, folder):
        # the protocol takes file descriptors 3 and 4, which the shell makes of the standard ones
        command = ["sh", "-c", 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1', "sh", CHROMIUM]
        command += [*_FLAGS, f"--user-data-dir={folder}", "about:blank"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._unread, self._calls, self._session, self.events = b"", 0, None, []
        try:
            target = self("Target.createTarget", url="about:blank")["targetId"]
            self._session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self(f"{domain}.enable")
        except BaseException:
            self._process.kill()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._session = None
            self("Browser.close")
            self._process.wait(PATIENCE)
        finally:
            self._process.kill()
            self._process.communicate()

    def __call__(self, method, **params):
        """Call a method of the protocol, and return its result."""
        self._calls += 1
        message = {"id": self._calls, "method": method, "params": params}
        message |= {"sessionId": self._session} if self._session else {}
        self._process.stdin.write(json.dumps(message).encode() + b"\0")
        self._process.stdin.flush()
        while True:
            answer = self._message()
            if answer.get("id") == self._calls:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def _message(self):
        deadline = time.monotonic() + _SECONDS
        while b"\0" not in self._unread:
            assert select.select([self._process.stdout], [], [], deadline - time.monotonic())[0], "no answer in time"
            read = os.read(self._process.stdout.fileno(), 1 << 20)
            assert read, "the browser has ended"
            self._unread += read
        whole, _, self._unread = self._unread.partition(b"\0")
        message = json.loads(whole)
        if "method" in message:
            self.events.append((message["method"], message["params"]))
        return message

    def open(self, url):
        """Open a page and wait until it is loaded."""
        self.events.clear()
        self("Page.navigate", url=url)
        while "Page.loadEventFired" not in {name for name, _ in self.events}:
            self._message()

    def show(self, width=1200, height=900, **features):
        """Set the size of the window in CSS pixels, ``media``, and media features: ``prefers_color_scheme="dark"``."""
        media = features.pop("media", "")
        named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self("Emulation.setEmulatedMedia", media=media, features=named)

    def evaluate(self, expression):
        """Return the value of a JavaScript expression as JSON has it."""
        result = self("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def press(self, key):
        """Press a key and let it go."""
        code, text = _KEYS.get(key) or ord(key.upper()), {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        for kind in ("keyDown", "keyUp"):
            typed = {"text": text} if kind == "keyDown" and text else {}
            self("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **typed)

    def pdf(self):
        """Return the page as it prints."""
        data = self("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"]
        return base64.b64decode(data)

    def screenshot(self):
        """Return a picture of the whole page as PNG."""
        return base64.b64decode(self("Page.captureScreenshot", captureBeyondViewport=True)["data"])
