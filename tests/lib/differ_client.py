# SPDX-License-Identifier: Apache-2.0
"""Runs inside the room, beside the scenarios' driver: plays the connections of /differ/plan.json, some at
a time, and prints what each got as one line of JSON, in their order."""
import concurrent.futures
import json

import driver

AT_ONCE = 12


class Client(dict):
    """Options that nobody named are not set."""

    def __missing__(self, _):
        return None


def play(connection):
    client = Client({"tls": True}, sni=connection["host"], wait_closed=not connection.get("h2"), **connection)
    if client["h2"]:
        client["alpn"] = ["h2"]
    got = driver.talk(client, [])
    return {"error": got["error"], "goaway": got.get("goaway"),
            "responses": [{"status": r["status"], "headers": r["headers"], "body": r["body"],
                           "stream": r.get("stream"), "complete": r["complete"]}
                          for r in got.get("responses", [])]}


def main():
    with open("/differ/plan.json") as f:
        plan = json.load(f)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for got in pool.map(play, plan):
            print(json.dumps(got), flush=True)


main()
