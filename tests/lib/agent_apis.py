# SPDX-License-Identifier: Apache-2.0
"""Doubles of the APIs that coding agents speak to, on loopback: Anthropic's Messages, OpenAI's Responses and Chat
Completions, Gemini's generateContent, that of Google's Code Assist. Each answers every prompt with ANSWER. And a token endpoint (RFC 6749 section 6), whose
refresh tokens are valid once (Anthropic's) or as long as they are (Google's)."""
import http.server
import json
import re
import ssl
import threading
import urllib.parse

ANSWER = "the-answer-of-the-double"
HOSTS = ["api.anthropic.com", "platform.claude.com", "api.openai.com", "generativelanguage.googleapis.com",
         "cloudcode-pa.googleapis.com", "www.googleapis.com", "oauth2.googleapis.com", "chatgpt.com", "auth.openai.com"]


def events(pairs):
    return "".join(("event: %s\n" % name if name else "") + "data: %s\n\n" % (data if isinstance(data, str) else json.dumps(data))
                   for name, data in pairs).encode()


def anthropic(body):
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model"), "content": [], "stop_reason": None,
               "stop_sequence": None, "usage": {"input_tokens": 9, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
                                                "output_tokens": 1}}
    text = {"type": "text", "text": ANSWER}
    if not body.get("stream"):
        return json.dumps(dict(message, content=[text], stop_reason="end_turn")).encode()
    steps = [{"type": "message_start", "message": message},
             {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
             {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ANSWER}},
             {"type": "content_block_stop", "index": 0},
             {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 9}},
             {"type": "message_stop"}]
    return events([(s["type"], s) for s in steps])


def responses(body):
    item = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]}
    usage = {"input_tokens": 9, "input_tokens_details": None, "output_tokens": 9, "output_tokens_details": None, "total_tokens": 18}
    steps = [{"type": "response.created", "response": {"id": "r1"}}, {"type": "response.output_item.done", "output_index": 0, "item": item},
             {"type": "response.completed", "response": {"id": "r1", "usage": usage}}]
    return events([(s["type"], s) for s in steps])


def completions(body):
    def chunk(delta, reason=None):
        return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": body.get("model"),
                "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
    if not body.get("stream"):
        return json.dumps({"id": "c1", "object": "chat.completion", "created": 1, "model": body.get("model"), "choices": [
            {"index": 0, "message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}]}).encode()
    return events([(None, chunk({"role": "assistant", "content": ANSWER})), (None, chunk({}, "stop")), (None, "[DONE]")])


def gemini(body, stream):
    text = ANSWER if stream else json.dumps({"reasoning": "x", "model_choice": "flash", "next_speaker": "user"})
    answer = {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0}],
              "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}}
    return events([(None, answer)]) if stream else json.dumps(answer).encode()


# What the secret of a client of Google's looks like.
GOOGLE_SECRET = re.compile(r"GOCSPX-[A-Za-z0-9_-]{28}")


def renewed(server, body, rotates):
    """The answer of the token endpoint: the next tokens, for the refresh token that is valid now. rotates: with a new one of those."""
    server.asked += 1
    if server.hold:
        server.hold.wait(60)
    with server.lock:
        if body.get("grant_type") != "refresh_token" or body.get("refresh_token") != server.refresh or not body.get("client_id"):
            return 400, {"error": "invalid_grant", "error_description": "Refresh token not found or invalid"}
        server.renewals += 1
        server.access = "sk-ant-oat01-the-real-access-token-%04d-0123456789" % server.renewals
        answer = {"token_type": "Bearer", "access_token": server.access, "expires_in": 28800, "scope": "user:inference user:profile"}
        if rotates:
            server.refresh = answer["refresh_token"] = "sk-ant-ort01-the-real-refresh-token-%04d-0123456789" % server.renewals
        return 200, answer


def code_assist(path, body):
    """The API that Gemini CLI speaks to with Google's login."""
    if path.endswith(":loadCodeAssist"):
        answer = {"currentTier": {"id": "free-tier", "name": "Free"}, "cloudaicompanionProject": "project-of-the-double"}
    elif path.endswith(":streamGenerateContent"):
        return gemini(body, True).replace(b'{"candidates"', b'{"response": {"candidates"').replace(b"\n\n", b"}\n\n")
    elif path.endswith(":generateContent"):
        answer = {"response": json.loads(gemini(body, False))}
    else:
        answer = {}
    return json.dumps(answer).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, path, body):
        """The answer, or None if there is none."""
        if path.endswith("/messages/count_tokens"):
            return b'{"input_tokens": 9}'
        if path.endswith("/messages"):
            return anthropic(body)
        if path.endswith("/responses"):
            return responses(body)
        if path.endswith("/chat/completions"):
            return completions(body)
        if path.startswith("/v1internal:"):
            return code_assist(path, body)
        if path.endswith("/userinfo"):
            return b'{"email": "ann@example.com"}'
        if path.endswith("enerateContent"):
            return gemini(body, path.endswith(":streamGenerateContent"))
        if path.endswith(("/hello", "/models")):
            return b'{"message": "hello", "data": [], "models": []}'
        return None

    def serve(self):
        length = int(self.headers.get("Content-Length") or 0)
        text = self.rfile.read(length)
        try:
            body = json.loads(text or b"{}")
        except ValueError:
            body = dict(urllib.parse.parse_qsl(text.decode("utf-8", "replace")))
        path = self.path.split("?")[0]
        self.server.requests.append((self.headers.get("Host"), self.command, path, dict(self.headers.items()), body))
        answer = self.answer(path, body)
        status = 200 if answer is not None else 404
        if path.endswith("/token"):
            status, answer = renewed(self.server, body, path.endswith("/oauth/token"))
            if self.headers.get("Host") == "oauth2.googleapis.com" and not GOOGLE_SECRET.fullmatch(body.get("client_secret", "")):
                status, answer = 401, {"error": "invalid_client", "error_description": "Unauthorized"}
            answer = json.dumps(answer).encode()
        elif self.server.access and self.headers.get("Authorization") not in (None, "Bearer " + self.server.access):
            status, answer = 401, json.dumps({"type": "error", "error": {
                "type": "authentication_error", "message": "OAuth token has expired. Please obtain a new token or refresh your existing token."}}).encode()
        self.send_response(status)
        stream = answer is not None and answer.startswith((b"event:", b"data:"))
        self.send_header("Content-Type", "text/event-stream" if stream else "application/json")
        answer = answer if answer is not None else b"{}"
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    do_GET = do_POST = do_HEAD = do_PUT = serve


class Apis:
    """One server for all of these hosts, with certificates of `authority` (testlib.Authority)."""

    def __init__(self, authority):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*authority.issue("apis", HOSTS))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.requests = []
        # Of a login: the tokens that are valid now; without an access token, every one is.
        self.server.lock = threading.Lock()
        self.server.access = self.server.refresh = None
        self.server.renewals = self.server.asked = 0
        self.server.hold = None  # an event that the token endpoint waits for
        # The handshake is made by the connection's own thread.
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.authority = authority
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def options(self):
        """The options of cloche that lead there."""
        port = self.server.server_address[1]
        return ["--upstream-ca", self.authority.cert] + [
            word for host in HOSTS for word in ("--connect-to", "%s:443:127.0.0.1:%d" % (host, port))]

    def prompts(self, host, needle):
        """The headers of requests to a host whose body has the text in it."""
        return [headers for at, _, _, headers, body in list(self.server.requests) if at == host and needle in json.dumps(body)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
