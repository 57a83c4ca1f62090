# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Drives a headless Chromium over its DevTools protocol.

Commands and events go through two pipes, as NUL-terminated JSON
(--remote-debugging-pipe), so that no port is opened and no package is needed.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")


class BrowserError(Exception):
    pass


def find_chromium():
    for name in NAMES:
        path = shutil.which(name)
        if path:
            return path
    raise BrowserError(f"found none of {', '.join(NAMES)}; scripts/setup.sh test installs chromium")


class Browser:
    """One Chromium with one page. What the page logs, throws and asks the
    network for is kept in `messages`, `exceptions` and `requests`."""

    def __init__(self, width=1280, height=900):
        self.messages, self.exceptions, self.requests = [], [], []
        self.profile = tempfile.mkdtemp(prefix="llamac-browser-")
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()
        command = [
            find_chromium(),
            "--headless=new",
            "--remote-debugging-pipe",
            f"--user-data-dir={self.profile}",
            f"--window-size={width},{height}",
            "--no-first-run",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--hide-scrollbars",
        ]
        if os.geteuid() == 0:
            command.append("--no-sandbox")  # Chromium's sandbox refuses root.

        # Chromium reads commands from descriptor 3 and writes to 4.
        def at_3_and_4():
            first, second = os.dup(to_browser), os.dup(from_browser)
            while first in (3, 4):
                first = os.dup(first)
            while second in (3, 4):
                second = os.dup(second)
            os.dup2(first, 3)
            os.dup2(second, 4)

        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=at_3_and_4,
            close_fds=False,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.buffer = b""
        self.last_id = 0
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(timeout=20)
        except (BrowserError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    # --- The protocol ---------------------------------------------------------

    def receive(self, deadline):
        while b"\0" not in self.buffer:
            ready = select.select([self.read_end], [], [], max(0, deadline - time.monotonic()))[0]
            piece = os.read(self.read_end, 1 << 20) if ready else b""
            if not piece:
                why = "does not answer" if not ready else "has ended"
                raise BrowserError(f"{self.process.args[0]} {why}")
            self.buffer += piece
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, timeout=60, **params):
        self.last_id += 1
        command = {"id": self.last_id, "method": method, "params": params}
        if self.session:
            command["sessionId"] = self.session
        data = json.dumps(command).encode() + b"\0"
        try:
            while data:
                data = data[os.write(self.write_end, data) :]
        except BrokenPipeError:
            raise BrowserError(f"{self.process.args[0]} has ended") from None
        deadline = time.monotonic() + timeout
        while True:
            answer = self.receive(deadline)
            if answer.get("id") != self.last_id:
                self.note(answer)
            elif "error" in answer:
                raise BrowserError(f"{method}: {answer['error']['message']}")
            else:
                return answer["result"]

    def note(self, event):
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.consoleAPICalled":
            self.messages.append(" ".join(str(arg.get("value")) for arg in params["args"]))
        elif method == "Log.entryAdded":
            self.messages.append(params["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.exceptions.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    # --- What tests do --------------------------------------------------------

    def open(self, page):
        """Opens a file, or an address on the network."""
        address = page if ":" in page else "file://" + os.path.abspath(page)
        self.call("Page.navigate", url=address)
        self.wait_for("document.readyState === 'complete'")

    def wait_for(self, condition, timeout=60):
        """Until a JavaScript expression is true."""
        deadline = time.monotonic() + timeout
        while not self.evaluate(condition):
            if time.monotonic() > deadline:
                raise BrowserError(f"after {timeout} s it does not hold that {condition}")
            time.sleep(0.02)

    def evaluate(self, expression):
        """The value of a JavaScript expression, or of its promise, as JSON would give it."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise BrowserError(f"{expression}: {details.get('exception', {}).get('description', details['text'])}")
        return answer["result"].get("value")

    def resize(self, width, height=900):
        """Gives the window a size; the page has been drawn for it then."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.draw(2)

    def draw(self, frames):
        """Waits until so many frames have been drawn."""
        for _ in range(frames):
            self.evaluate("new Promise((done) => requestAnimationFrame(() => done(0)))")

    def press(self, key, shift=False, alt=False):
        """A key as the keyboard gives it: "Tab", "ArrowDown", "Enter", "a", "/"."""
        numbers = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "End": 35, "Home": 36}
        numbers |= {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "/": 191}
        code = {" ": "Space", "/": "Slash"}.get(key, key if len(key) > 1 else "Key" + key.upper())
        number = numbers[key] if key in numbers else ord(key.upper())
        event = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": 8 * shift + alt}
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else None)
        if text and not alt:
            event["text"] = text
        self.call("Input.dispatchKeyEvent", type="keyDown", **event)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def write(self, text):
        """Text into what has the focus."""
        self.call("Input.insertText", text=text)

    def choose_files(self, selector, *paths):
        """Files for a field of files, as if picked in its dialog."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        field = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=field, files=[os.path.abspath(path) for path in paths])

    def prefer(self, scheme):
        """Makes the system's colours "light" or "dark"."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path, selector=None):
        """A PNG of the window, or of all of the element `selector`."""
        options = {}
        if selector:
            box = self.evaluate(
                f"(() => {{ const r = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
                " return [r.x + scrollX, r.y + scrollY, r.width, r.height]; })()"
            )
            options = {
                "clip": dict(zip(("x", "y", "width", "height"), box), scale=1),
                "captureBeyondViewport": True,
            }
        data = self.call("Page.captureScreenshot", format="png", **options)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
