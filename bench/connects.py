# SPDX-License-Identifier: Apache-2.0
"""Proxies that are spoken to by CONNECT, which no load generator does: connect.c does it for them.
Its time is not the proxy's, but it takes part of the machine."""
import os
import select
import shutil
import subprocess

import engines
from common import HERE, clean_env, have, log
from testlib import free_port

CERTGEN = "/usr/lib/squid/security_file_certgen"
SQUID = """
http_port 127.0.0.1:%(port)d ssl-bump generate-host-certificates=on \
 dynamic_cert_mem_cache_size=4MB cert=%(ca)s
sslcrtd_program %(certgen)s -s %(db)s -M 4MB
sslcrtd_children 1 startup=1 idle=1
acl step1 at_step SslBump1
ssl_bump peek step1
ssl_bump bump all
acl allowed dstdomain %(host)s
http_access allow allowed
http_access deny all
tls_outgoing_options cafile=%(authority)s
cache deny all
pinger_enable off
access_log none
cache_log %(work)s/squid.log
pid_filename %(work)s/squid.pid
coredump_dir %(work)s
shutdown_lifetime 0 seconds
"""


def forward(stage, proxy, port, to, where, user=()):
    """Starts connect.c on port, to a proxy and through it to a host and port."""
    program = os.path.join(stage.work, "connect")
    if not os.path.exists(program):
        subprocess.run(["cc", "-O2", "-o", program, os.path.join(HERE, "connect.c"), "-lpthread"],
                       check=True, env=clean_env())
    stage.start("connect-" + proxy, [program, str(port), str(to), where, *user], port)


def squid(stage, host):
    """squid decrypts with certificates that it makes (ssl-bump), and refuses what is not listed."""
    if not have("squid") or not os.access(CERTGEN, os.X_OK):
        return
    # It gives up root, and its helper has to read and write here.
    folder = os.path.join(stage.work, "squid")
    os.makedirs(folder)
    ca = stage.write("squid/ca.pem", "".join(
        open(f).read() for f in (stage.authority.key, stage.authority.cert)))
    db = os.path.join(folder, "db")
    subprocess.run([CERTGEN, "-c", "-s", db, "-M", "4MB"], check=True, env=clean_env(),
                   stdout=subprocess.DEVNULL)
    if os.geteuid() == 0:
        for root, _, files in os.walk(folder):
            for path in [root] + [os.path.join(root, f) for f in files]:
                shutil.chown(path, "proxy")
    port = free_port()
    conf = stage.write("squid.conf", SQUID % {
        "port": port, "ca": ca, "certgen": CERTGEN, "db": db, "host": host,
        "authority": stage.authority.cert, "work": folder})
    stage.ports["squid"] = free_port()
    try:
        stage.start("squid", ["squid", "-N", "-f", conf], port, 20)
        forward(stage, "squid", stage.ports["squid"], port, "%s:%d" % (host, stage.origin))
    except (OSError, subprocess.CalledProcessError) as why:
        log("bench: squid: %s" % why)
        stage.ports.pop("squid", None)


def srt(stage, host):
    """srt's proxy looks at names alone: it does not decrypt, so it can neither judge a path nor put in
    a secret."""
    try:
        package = engines.srt_package()
        p = subprocess.Popen(["node", os.path.join(HERE, "srt_proxy.mjs"), package, host],
                             stdout=subprocess.PIPE, text=True, env=clean_env(TMPDIR=stage.work))
        stage.processes["srt"] = p
        line = p.stdout.readline() if select.select([p.stdout], [], [], 20)[0] else ""
        to, user = line.split()
        stage.ports["srt"] = free_port()
        forward(stage, "srt", stage.ports["srt"], int(to), "%s:%d" % (host, stage.origin), [user])
    except (engines.Absent, OSError, ValueError, subprocess.CalledProcessError) as why:
        log("bench: srt: %s" % why)
        stage.ports.pop("srt", None)
