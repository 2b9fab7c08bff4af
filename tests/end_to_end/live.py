"""The live page of a real sweep under mpirun, as a browser and as hundreds of clients see it, and what it costs the
sweep: nothing that shows, whatever they do."""

import http.client
import json
import os
import pathlib
import re
import selectors
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import uuid

import browser
from program import MARK, PATIENCE_S, PROGRAM, SLOW_SWEEP, answer_digest, environment_in, kill_all, marked, run

TICKS = os.sysconf("SC_CLK_TCK")
MOST_CLIENTS, NEVER_READ = 200, 40
# A quarter of a minute of two cores: a browser takes seconds to open, and is to see it move before it is killed and after.
LONG_SWEEP = SLOW_SWEEP.replace("axes:", """axes:
  strategy.overlap_grad_reduce: [false, true]
  strategy.global_batch: [128, 256, 384, 512]""")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(port, path, **fields):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path, headers=fields)
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    return reply, body


def words_of(process):
    try:
        return pathlib.Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def server_of(mark):
    found = [process for process in marked(mark) if words_of(process)[1:2] == [b"serve"]]
    return found[0] if len(found) == 1 else None


def cpu_s(process):
    """User and system time of one process so far; with the children it waited for."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15])) / TICKS


def coordinator_of(directory):
    """The process that holds the run's lock, as it signed it."""
    return int(json.loads((directory / "lock").read_text())["pid"])


class Live(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="manyworlds-live-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.mark = uuid.uuid4().hex
        self.addCleanup(kill_all, self.mark)
        (self.directory / "slow.yaml").write_text(SLOW_SWEEP)
        self.port = free_port()

    def start(self, *words):
        return subprocess.Popen([PROGRAM, *map(str, words)], cwd=self.directory, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=environment_in(self.directory, self.mark))

    def sweep(self, *words, serve=None):
        return self.start("sweep", "slow.yaml", "-o", "run", "-j", 2, "--store", "none",
                          *(["--serve", serve or self.port] if serve != "" else []), *words)

    def wait_for(self, condition, what, seconds=60):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if value := condition():
                return value
            time.sleep(0.05)
        self.fail(f"no {what} within {seconds} s")

    def serving(self):
        def up():
            try:
                return ask(self.port, "/healthz")[0].status
            except OSError:
                return None
        return self.wait_for(up, "server")

    def status(self):
        return json.loads((self.directory / "run" / "status.json").read_text())

    def finish(self, process, expect=0):
        out, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, expect, err)
        self.wait_for(lambda: not marked(self.mark), "end of every process", seconds=20)
        return out, err

    def test_a_browser_watches_a_sweep_lose_its_coordinator_go_on_and_finish(self):
        if reason := browser.unavailable():
            self.skipTest(reason)
        (self.directory / "slow.yaml").write_text(LONG_SWEEP)
        with browser.Browser() as page:
            process = self.sweep()
            self.serving()
            page.open(f"http://127.0.0.1:{self.port}/")
            done = "return Number((document.querySelector('.tile b')?.textContent ?? '0').split('/')[0].replace(/,/g, ''))"
            first = page.wait_for(done)
            more = page.wait_for(f"const done = (() => {{ {done} }})(); return done > {first} && done")
            page.wait_for("return document.querySelectorAll('#ranking tbody tr').length > 0")
            self.assertEqual(page.run("return document.getElementById('state').textContent"), "running")
            self.assertEqual(page.run("return document.querySelectorAll('#load .meter').length"), 2)
            page.listen()
            self.assertEqual(page.complaints, [])

            os.kill(coordinator_of(self.directory / "run"), signal.SIGKILL)
            self.finish(process, expect=70)
            page.wait_for("return document.getElementById('link').textContent.includes('not connected')")
            self.assertGreater(self.status()["done"], 0)
            page.listen()
            # What a browser says of a server that has gone, and nothing else.
            for complaint in page.complaints:
                self.assertRegex(complaint, r"/events.*ERR_(CONNECTION_REFUSED|INCOMPLETE_CHUNKED_ENCODING|CONNECTION_RESET|EMPTY_RESPONSE)")
            page.complaints.clear()

            process = self.start("resume", "run", "-j", 2, "--store", "none", "--serve", self.port)
            page.wait_for(f"const done = (() => {{ {done} }})(); return document.body.dataset.connected === 'true' && done > {more}")
            page.listen()
            page.complaints.clear()  # of looking for it meanwhile
            self.finish(process)
            page.wait_for("return document.getElementById('state').textContent === 'complete'")
            status = self.status()
            self.assertEqual(page.run(done), status["total"])
            self.assertEqual(page.run("return [...document.querySelectorAll('#ranking tbody tr')].map(row => [row.cells[1].textContent, row.cells[2].textContent])"),
                             [[str(row["id"]), row["layout"]] for row in status["ranking"]["rows"]])
            self.assertGreater(page.drawn("#pareto"), 0.005)
            time.sleep(3)  # it looks no further
            page.listen()
            self.assertEqual(page.complaints, [])
            self.assertTrue(page.requests)
            for url in page.requests:
                self.assertRegex(url, rf"^(http://127\.0\.0\.1:{self.port}/|data:,)")
        top = json.loads(run("top", "run", "--json", directory=self.directory).stdout)
        self.assertEqual([row["columns"]["id"] for row in top["rows"]], [row["id"] for row in status["ranking"]["rows"]])

    def test_a_page_of_names_and_reasons_that_are_markup_shows_them_as_text(self):
        if reason := browser.unavailable():
            self.skipTest(reason)
        evil = "<img src=x onerror=\"document.title='broken in'\"><script>document.title='broken in'</script>"
        run("sweep", "slow.yaml", "-o", "run", "-j", 2, "--store", "none", "--set", "strategy.global_batch=128",
            "--stop-after", "2s", directory=self.directory, expect=75, mark=self.mark)
        status = self.status()
        status["name"] = status["resume"] = evil
        status["failures"] = [{"task": 1, "kind": evil, "class": evil, "experiment": 2, "reason": evil}]
        for row in status["ranking"]["rows"]:
            row["layout"] = evil
        for phone in (False, True):
            (self.directory / "run" / "status.json").write_text(json.dumps(status))
            process = self.start("serve", "run", self.port)
            self.serving()
            with browser.Browser(dark=phone, width=400 if phone else 1280) as page:
                page.open(f"http://127.0.0.1:{self.port}/")
                page.wait_for("return document.querySelectorAll('#failures tbody tr').length === 1")
                self.assertEqual(page.run("return document.querySelectorAll('img, body script:not([src])').length"), 0)
                self.assertEqual(page.run("return document.querySelector('h1').textContent"), evil)
                self.assertEqual(page.run("return document.querySelector('#failures tbody tr').cells[4].textContent"), evil)
                self.assertLessEqual(page.run("return document.documentElement.scrollWidth - innerWidth"), 0)
                page.listen()
                self.assertEqual(page.complaints, [])
            process.send_signal(signal.SIGINT)
            self.finish(process)

    def test_only_who_has_the_token_is_let_in_from_elsewhere_and_it_outlives_a_life_of_the_run(self):
        (self.directory / "slow.yaml").write_text(LONG_SWEEP)
        process = self.sweep("--stop-after", "3s", serve=f"0.0.0.0:{self.port}")
        said = process.stderr.readline()
        address = re.fullmatch(r"live page: http://[^/]+:(\d+)/\?token=([0-9a-f]{32})\n", said)
        self.assertTrue(address, said)
        self.assertEqual(int(address[1]), self.port)
        token = address[2]
        self.serving()
        for path in ("/", "/status.json", "/events", "/metrics", "/results.h5", "/live.js", "/none", f"/?token={'0' * 32}"):
            reply, body = ask(self.port, path)
            self.assertEqual((reply.status, b"slow" in body), (401, False), path)
        reply, _ = ask(self.port, f"/?token={token}")
        self.assertEqual(reply.status, 200)
        cookie = reply.getheader("Set-Cookie").split(";")[0]
        for fields in ({"Cookie": cookie}, {"Authorization": f"Bearer {token}"}):
            self.assertEqual(ask(self.port, "/status.json", **fields)[0].status, 200)
        file = self.directory / "run" / "serve.token"
        self.assertEqual((file.stat().st_mode & 0o777, file.read_text().strip()), (0o600, token))
        self.finish(process, expect=75)
        process = self.start("resume", "run", "-j", 2, "--store", "none", "--serve", f"0.0.0.0:{self.port}")
        self.assertIn(token, process.stderr.readline())
        self.serving()
        self.assertEqual(ask(self.port, "/metrics", Cookie=cookie)[0].status, 200)
        process.send_signal(signal.SIGUSR1)
        self.finish(process, expect=75)

    def test_a_port_that_cannot_be_had_is_bad_usage_before_anything_is_made(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", self.port))
            taken.listen()
            for words in (["-j", 2], ["-j", 1], ["-j", 2, "--in-process"]):
                done = run("sweep", "slow.yaml", "-o", "never", "--serve", self.port, *words, directory=self.directory, expect=2)
                self.assertRegex(done.stderr, rf"^manyworlds sweep: --serve: cannot listen at port {self.port} .*already in use.*\n$")
        for address in ("nothing", "70000", "no.such.host.invalid:80"):
            run("sweep", "slow.yaml", "-o", "never", "--serve", address, directory=self.directory, expect=2)
        self.assertFalse((self.directory / "never").exists())
        done = run("sweep", "slow.yaml", "--dry-run", "--serve", self.port, directory=self.directory, expect=2)
        self.assertEqual(done.stderr, "manyworlds sweep: --serve: there is nothing to watch under --dry-run: leave one of them out\n")
        run("serve", "never", self.port, directory=self.directory, expect=2)

    def test_a_server_that_dies_is_said_once_and_the_run_goes_on(self):
        for words in ([], ["--in-process"]):
            process = self.sweep(*words)
            self.serving()
            server = self.wait_for(lambda: server_of(self.mark), "server's process")
            self.assertEqual(os.getpriority(os.PRIO_PROCESS, server), 19)
            limits = pathlib.Path(f"/proc/{server}/limits").read_text()
            self.assertLess(int(re.search(r"Max address space +(\d+)", limits)[1]), 512 << 20)
            self.assertLess(int(re.search(r"Max open files +(\d+)", limits)[1]), 2048)
            os.kill(server, signal.SIGKILL)
            _, err = self.finish(process)
            self.assertEqual(err.count("the server of the live page has ended (signal 9)"), 1, err)
            shutil.rmtree(self.directory / "run")

    def test_a_server_does_not_outlive_a_run_that_is_killed(self):
        process = self.sweep()
        self.serving()
        server = self.wait_for(lambda: server_of(self.mark), "server's process")
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        self.wait_for(lambda: not pathlib.Path(f"/proc/{server}").exists(), "end of the server", seconds=20)
        self.assertRaises(OSError, ask, self.port, "/healthz")

    def test_a_run_under_a_foreign_mpirun_serves_from_its_first_rank(self):
        mpirun = shutil.which("mpirun")
        if mpirun is None:
            self.skipTest("mpirun is not installed")
        words = [mpirun, "--oversubscribe", "--bind-to", "none", "-n", "2", *(["--allow-run-as-root"] if os.geteuid() == 0 else []),
                 PROGRAM, "sweep", "slow.yaml", "-o", "run", "--store", "none", "--serve", str(self.port)]
        environment = environment_in(self.directory, self.mark, OMPI_MCA_btl_vader_single_copy_mechanism="none",
                                     OMPI_MCA_plm_rsh_agent="sh")
        process = subprocess.Popen(words, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=environment)
        self.serving()
        self.wait_for(lambda: json.loads(ask(self.port, "/status.json")[1]).get("done", 0) > 0, "progress")
        self.finish(process)

    def test_the_answer_is_that_of_a_run_that_is_not_served(self):
        self.finish(self.sweep(serve=""))
        (self.directory / "run").rename(self.directory / "plain")
        process = self.sweep()
        self.serving()
        self.finish(process)
        self.assertEqual(answer_digest(self.directory / "run" / "results.h5"), answer_digest(self.directory / "plain" / "results.h5"))
        self.assertEqual(run("diff", "run", "plain", directory=self.directory).stdout, "same results\n")

    def test_hundreds_of_clients_and_some_that_never_read_cost_a_sweep_no_hundredth(self):
        """CPU seconds of the server over those of the whole sweep, in one run, while 200 clients watch, 40 never read,
        and what is read is counted."""
        spec = SLOW_SWEEP.replace("global_batch: 256", "global_batch: 512").replace("[1, 2]", "[1, 2, 4]")
        (self.directory / "slow.yaml").write_text(spec)
        process = self.sweep()
        self.serving()
        server = self.wait_for(lambda: server_of(self.mark), "server's process")
        clients, selector, heard = [], selectors.DefaultSelector(), {}
        for number in range(MOST_CLIENTS + NEVER_READ):
            client = socket.create_connection(("127.0.0.1", self.port))
            if number >= MOST_CLIENTS:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            clients.append(client)
            if number < MOST_CLIENTS:
                selector.register(client, selectors.EVENT_READ)
                heard[client] = 0
        served_s = ended = 0
        while not ended:
            for key, _ in selector.select(timeout=0.2):
                got = key.fileobj.recv(1 << 20)
                heard[key.fileobj] += got.count(b"event: status")
                if not got:
                    selector.unregister(key.fileobj)
            try:
                served_s = cpu_s(server)
            except OSError:
                pass
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        process.returncode = os.waitstatus_to_exitcode(status)
        err = process.communicate()[1]
        self.assertEqual(process.returncode, 0, err)
        for client in clients:
            client.close()
        all_s = usage.ru_utime + usage.ru_stime  # with all that it waited for: ranks, simulators and the server
        self.assertGreaterEqual(min(heard.values()), 3)
        print(f"\n{len(heard)} clients heard {min(heard.values())} to {max(heard.values())} states; "
              f"the server took {served_s:.2f} of {all_s:.1f} s of CPU: {100 * served_s / all_s:.2f} %")
        self.assertLess(served_s, 0.01 * all_s)


if __name__ == "__main__":
    unittest.main(verbosity=2)
