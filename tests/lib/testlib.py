# SPDX-License-Identifier: Apache-2.0
"""What the integration tests, the scenarios and the benchmarks share: where the programs are, a clean
environment, a private CA, TAP."""
import concurrent.futures
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.environ.get("CLOCHE_SOURCE") or os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
# Another build's programs can be named; the tests are then run by hand.
BIN = os.environ.get("CLOCHE_TEST_BIN") or os.path.join(ROOT, "build", "bin")
CLOCHE = os.path.join(BIN, "cloche")
PYTHON = "/usr/bin/python3"
# 1, or what part of something random is done where the same is done a second time (rounds(), once()).
PART = int(os.environ.get("CLOCHE_TEST_PART", "1"))


def default_signals():
    """What our caller ignores or blocks (nohup, a shell's background) is not ours, nor that of what we
    start. What Python itself ignores it gives back to what it starts."""
    for number in signal.valid_signals():
        if signal.getsignal(number) == signal.SIG_IGN and \
                number not in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


default_signals()


def clean_env(**more):
    """Nothing of the caller's environment but what a login would give."""
    env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
           "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8"}
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "TMPDIR"):
        if name in os.environ:
            env[name] = os.environ[name]
    # Where the tests of rooms are run with another provider (test-providers).
    if "CLOCHE_TEST_PROVIDER" in os.environ:
        env["CLOCHE_PROVIDER"] = os.environ["CLOCHE_TEST_PROVIDER"]
        env.update((n, v) for n, v in os.environ.items() if n.startswith(("CONTAINERS_", "DOCKER_", "CLOCHE_PROVIDER_PATH")))
    env.update(more)
    return env


CLONE_NEWNS = 0x00020000


def private_mounts():
    """From here on nobody else sees what this process mounts. False if it may not mount anything: that takes root."""
    if os.geteuid() != 0 or not shutil.which("mount") or ctypes.CDLL(None).unshare(CLONE_NEWNS) != 0:
        return False
    return subprocess.run(["mount", "--make-rprivate", "/"], check=False, stderr=subprocess.DEVNULL).returncode == 0


class Skip(Exception):
    """Raised by a test that cannot run here; the text says why."""


class Failure(AssertionError):
    pass


def expect(cond, text="", *details):
    if not cond:
        raise Failure("\n".join([text] + [str(d) for d in details]))


def attempt(test):
    """(what went wrong or None, seconds) of a test. Whatever it was, the next test shall run."""
    start, error = time.monotonic(), None
    try:
        test()
    except Exception as e:
        error = e
    return error, time.monotonic() - start


def once(test):
    """Marks a test of what is the same whoever runs it: a second time, as an ordinary user (tools/test), it is left out."""
    test.once = True
    return test


def tap_main(tests, at_once=False):
    """Runs functions in order; their names and first doc lines are the tests' names. at_once: all of
    them at the same time, for those that wait most of theirs and have nothing in common."""
    wanted = sys.argv[1:]
    tests = [t for t in tests if (t.__name__ in wanted if wanted else PART == 1 or not hasattr(t, "once"))]
    print("1..%d" % len(tests), flush=True)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(len(tests) or 1) as pool:
        results = (pool.map if at_once else map)(attempt, tests)
        for number, (test, (error, seconds)) in enumerate(zip(tests, results), 1):
            name = test.__name__ + (": " + test.__doc__.strip().split("\n")[0] if test.__doc__ else "")
            name = name.replace("#", "")
            if not error:
                print("ok %d - %s (%.2f s)" % (number, name, seconds), flush=True)
            elif isinstance(error, Skip):
                print("ok %d - %s # SKIP %s" % (number, name, error), flush=True)
            else:
                failed += 1
                kind = "" if isinstance(error, Failure) else type(error).__name__ + ": "
                for line in (kind + str(error)).splitlines():
                    print("# " + line)
                print("not ok %d - %s" % (number, name), flush=True)
    return 1 if failed else 0


def rounds(count):
    """How many rounds of something random: all of them, or a part, in tens, where the same is done a second
    time as an ordinary user (tools/test)."""
    return min(count, -(-count // (10 * PART)) * 10)


def at_once(one, items):
    """one(item) for each of the items, all at the same time. Raises the first failure."""
    with concurrent.futures.ThreadPoolExecutor(len(items)) as pool:
        list(pool.map(one, items))


# A pod may have to wait for a node that is busy.
SLOWER = 5 if os.environ.get("CLOCHE_TEST_PROVIDER") == "kubernetes" else 1


def run_cloche(args, input=None, timeout=60, env=None, cwd=None, text=True):
    """Runs build/bin/cloche; returns the finished process with its output."""
    return subprocess.run([CLOCHE] + args, input=input, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=SLOWER * timeout, env=env or clean_env(), cwd=cwd,
                          stdin=subprocess.DEVNULL if input is None else None, text=text,
                          errors="replace" if text else None, check=False)


# What the buffers of connections and of datagrams that nobody reads take, in MiB.
SOCKETS = """
import socket
n, kept = 0, []
listener = socket.create_server(("127.0.0.1", 0), backlog=100)
for _ in range(40):
    c = socket.create_connection(listener.getsockname())
    c.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 20)
    c.setblocking(False)
    kept += [c, listener.accept()[0]]
    try:
        while n < 300 << 20:
            n += c.send(bytes(65536))
    except BlockingIOError:
        pass
print(n >> 20)
for i in range(0, len(kept), 2):
    kept[i].close()
    kept[i + 1].close()
n, kept = 0, []
for _ in range(600):
    r = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    r.bind(("127.0.0.1", 0))
    r.setblocking(False)
    kept.append(r)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for _ in range(4):
            s.sendto(bytes(50000), r.getsockname())
for r in kept:
    try:
        while True:
            n += len(r.recv(65536))
    except BlockingIOError:
        pass
print(n >> 20)
"""


def own_ids():
    """Who commands are by default: the caller, but root in the rooms of engines."""
    provider = clean_env().get("CLOCHE_PROVIDER", "native")
    if provider in ("native", "auto", "landlock", "ssh", "subprocess") or provider.endswith("elsewhere"):
        return os.geteuid(), os.getegid()
    return (1000, 1000) if provider == "kubernetes" else (0, 0)


def need(*programs):
    for p in programs:
        if not shutil.which(p, path=clean_env()["PATH"]):
            raise Skip(p + " is not installed")


def expect_in_formats(heading, names):
    """Each name stands in backquotes in that section of docs/design/formats.md."""
    with open(os.path.join(ROOT, "docs/design/formats.md")) as f:
        section = f.read().split("\n## %s\n" % heading)[1].split("\n## ")[0]
    missing = [n for n in names if "`%s`" % n not in section]
    expect(not missing, "formats.md does not have these in \"%s\"" % heading, missing)


def members(document):
    """The names of all members of a JSON document, at any depth."""
    if isinstance(document, dict):
        return set(document).union(*map(members, document.values()))
    return set().union(*map(members, document)) if isinstance(document, list) else set()


class TemporaryDir:
    """A directory of this test's own, removed at its end."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="cloche-test-")
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def openssl(*args, input=None):
    p = subprocess.run(("openssl",) + args, input=input, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, env=clean_env(), check=False)
    if p.returncode:
        raise Failure("openssl %s: %s" % (" ".join(args), p.stderr.decode()))
    return p.stdout


def free_port():
    """A port of 127.0.0.1 on which nobody listens just now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Authority:
    """A private CA in a directory: ca.pem, and certificates made on demand."""

    def __init__(self, folder, name="Test CA"):
        self.folder = folder
        self.cert = os.path.join(folder, "ca.pem")
        self.key = os.path.join(folder, "ca.key")
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-keyout", self.key, "-out", self.cert, "-days", "2", "-subj", "/CN=" + name,
                "-addext", "basicConstraints=critical,CA:TRUE",
                "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def issue(self, label, names, expired=False, own=False):
        """Returns (certificate file, key file); own: self-signed."""
        base = os.path.join(self.folder, label)
        cert, key, csr, ext = (base + s for s in (".pem", ".key", ".csr", ".ext"))
        names = ",".join(("IP:" if n.replace(".", "").isdigit() else "DNS:") + n for n in names)
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                key, "-out", csr, "-subj", "/CN=" + label)
        with open(ext, "w") as f:
            f.write("subjectAltName=%s\nextendedKeyUsage=serverAuth\n" % names)
        args = ["x509", "-req", "-in", csr, "-out", cert, "-extfile", ext]
        if own:
            args += ["-signkey", key, "-days", "2"]
        else:
            args += ["-CA", self.cert, "-CAkey", self.key, "-set_serial",
                     str(int.from_bytes(os.urandom(8), "big"))]
            args += ["-days", "-1"] if expired else ["-days", "2"]
        openssl(*args)
        return cert, key


def descendants(pid):
    """Living processes below pid: {pid: name}. Zombies are left out: somebody else reaps them."""
    children, names = {}, {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % entry, errors="replace") as f:
                stat = f.read()
        except OSError:
            continue
        name = stat[stat.index("(") + 1:stat.rindex(")")]
        state, parent = stat[stat.rindex(")") + 2:].split()[:2]
        if state not in "ZX":
            children.setdefault(int(parent), []).append(int(entry))
            names[int(entry)] = name
    found, todo = {}, [pid]
    while todo:
        for child in children.get(todo.pop(), []):
            found[child] = names[child]
            todo.append(child)
    return found


def session_lives(pid):
    """Whether anything lives of the session that pid leads or led: what was killed may take a while to die."""
    for entry in os.listdir("/proc"):
        try:
            with open("/proc/%s/stat" % entry, errors="replace") as f:
                state, _, _, session = f.read().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            continue
        if entry.isdigit() and int(session) == pid and state not in "ZX":
            return True
    return False


def status_kib(pid, field):
    """A line of /proc/PID/status in KiB, or 0 if the process is gone."""
    try:
        with open("/proc/%d/status" % pid) as f:
            for line in f:
                if line.startswith(field + ":"):
                    return int(line.split()[1])
    except (OSError, ValueError):
        pass
    return 0


def processes_with_marker(marker):
    """Living processes whose environment or command line holds the marker (bytes)."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open("/proc/%s/stat" % entry, errors="replace") as f:
                stat = f.read()
            if stat[stat.rindex(")") + 2] in "ZX":
                continue
            for part in ("environ", "cmdline"):
                try:
                    with open("/proc/%s/%s" % (entry, part), "rb") as f:
                        if marker in f.read():
                            found.append((int(entry), stat.split("(")[1].split(")")[0]))
                            break
                except PermissionError:
                    pass
        except OSError:
            continue
    return found


def wait_until(cond, seconds=30.0, step=0.02):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if cond():
            return True
        time.sleep(step)
    return bool(cond())


def catches(pid, signo):
    """Whether a process has a handler for a signal."""
    return bool(signal_set(pid, "SigCgt") >> (signo - 1) & 1)


def send_signal(p, signo):
    """Sends a signal, and waits until the process took it: two of a kind that wait would be one."""
    p.send_signal(signo)
    expect(wait_until(lambda: not signal_set(p.pid, "ShdPnd") >> (signo - 1) & 1, step=0.005),
           "signal %d still waits" % signo)


def signal_set(pid, name):
    with open("/proc/%d/status" % pid) as f:
        sets = [line.split()[1] for line in f if line.startswith(name + ":")]
    return int(sets[0], 16) if sets else 0
