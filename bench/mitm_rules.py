# SPDX-License-Identifier: Apache-2.0
"""For mitmdump: the rules that the other contestants of the benchmark have. What is not listed is
refused, and a surrogate in a header becomes the secret."""
import os

from mitmproxy import http

HOSTS = set(os.environ["BENCH_HOSTS"].split())
SURROGATE, SECRET = os.environ["BENCH_SURROGATE"], os.environ["BENCH_SECRET"]


def request(flow):
    if flow.request.host not in HOSTS or flow.request.method not in ("GET", "PUT", "POST"):
        flow.response = http.Response.make(403, b"not allowed\n")
        return
    for name, value in flow.request.headers.items():
        if SURROGATE in value:
            flow.request.headers[name] = value.replace(SURROGATE, SECRET)
