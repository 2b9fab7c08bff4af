"""A page in a real headless Chromium: what it asked for, what it complained of, what can be read and clicked."""

import json
import os
import shutil
import tempfile

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


def unavailable():
    """Why no browser can be had here; None where it can."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "python3-selenium is not installed"
    return None if CHROMIUM and DRIVER else "chromium and chromium-driver are not installed"


class Browser:
    """`with Browser() as browser: browser.open(url)`; `dark`, and a width in CSS pixels, as the reader's system has."""

    def __init__(self, **view):
        self.view = view  # as see() takes it

    def __enter__(self):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        self.profile = tempfile.mkdtemp(prefix="manyworlds-browser.")
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        # Nothing but this machine can be reached, and what a new profile asks for of its own accord is off.
        for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update", "--force-color-profile=srgb",
                     "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
                     f"--user-data-dir={self.profile}"):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service(DRIVER, log_path=os.devnull), options=options)
        self.driver.set_page_load_timeout(120)
        self.driver.set_script_timeout(120)
        self.see(**self.view)
        return self

    def see(self, dark=False, width=1280, height=900):
        """Another reader's system, and an empty page of which nothing is known yet."""
        self.open("about:blank")
        self.command("Emulation.setEmulatedMedia", media="",
                     features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.requests, self.complaints = [], []
        self.open("about:blank")
        self.listen()  # to what was there before, such as the browser's own first page
        self.requests.clear()
        self.complaints.clear()

    def __exit__(self, *unused):
        self.driver.quit()
        shutil.rmtree(self.profile, ignore_errors=True)

    def command(self, name, **words):
        """One of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(name, words)

    def open(self, url):
        self.driver.get(url)

    def run(self, script, *words):
        """What the JavaScript `script` returns."""
        return self.driver.execute_script(script, *words)

    def wait_for(self, script, *words, seconds=60):
        """The first true value of what `script` returns; a TimeoutException where there is none in time."""
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.driver, seconds, 0.1).until(lambda _: self.run(script, *words))

    def listen(self):
        """Reads what happened since: URLs asked for into `requests`, errors and warnings of pages into `complaints`."""
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                words = message["params"]
                self.requests.append(words["request"]["url"] if "request" in words else words["url"])
        for entry in self.driver.get_log("browser"):
            if entry["level"] in ("SEVERE", "WARNING"):
                self.complaints.append(f"{entry['level']}: {entry['message']}")

    def drawn(self, canvas):
        """The share of a canvas' pixels on which something is, by its CSS selector."""
        return self.run("""
            const canvas = document.querySelector(arguments[0]);
            const bytes = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
            let some = 0;
            for (let i = 3; i < bytes.length; i += 4) some += bytes[i] > 0;
            return some / (bytes.length / 4);""", canvas)

    def picture(self, file, whole=True):
        """A PNG of the page, all of it or what is in the window."""
        import base64

        words = {"format": "png", "captureBeyondViewport": whole}
        if whole:
            size = self.command("Page.getLayoutMetrics")["cssContentSize"]
            words["clip"] = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        with open(file, "wb") as to:
            to.write(base64.b64decode(self.command("Page.captureScreenshot", **words)["data"]))
