# SPDX-License-Identifier: Apache-2.0
# What "python3 -c" is given for code of somebody else. Lines that are comments do not reach the
# command line. What it says of results goes behind marks (api/code_value.h).
#
# Standard input has a line, then the code as it is, up to its end. The line is empty for a program;
# else it is "expr" or "cell" and the nonce of the marks. With the argument "context" it has no end,
# but a line for each call: nonce, "expr" or "cell", how many bytes of code, "=" and these in
# base64. What is no such line was left by a caller who died amid it.
import os, sys, types

TYPES = (("html", "_repr_html_", "text/html"), ("markdown", "_repr_markdown_", "text/markdown"),
         ("latex", "_repr_latex_", "text/latex"), ("svg", "_repr_svg_", "image/svg+xml"),
         ("png", "_repr_png_", "image/png"), ("jpeg", "_repr_jpeg_", "image/jpeg"))
LIMIT, MOST = 8 << 20, 64

def put(fd, out):
    while out:
        out = out[os.write(fd, out):]

def encode(text):
    return text.encode("utf-8", "backslashreplace")

def ask(value, method):
    try:
        found = getattr(type(value), method)(value)
    except Exception:
        return None
    return found[0] if isinstance(found, tuple) and found else found

def draw(figure):
    import io
    out = io.BytesIO()
    figure.savefig(out, format="png", bbox_inches="tight")
    return out.getvalue()

def rich(value):
    import binascii
    bundle = ask(value, "_repr_mimebundle_")
    for name, method, mime in TYPES:
        data = bundle.get(mime) if isinstance(bundle, dict) else None
        data = ask(value, method) if data is None else data
        if data is None and name == "png" and type(value).__module__ == "matplotlib.figure" and hasattr(value, "savefig"):
            data = draw(value)
        if isinstance(data, str) and name in ("png", "jpeg"):
            try:
                data = binascii.a2b_base64(data)
            except ValueError:
                continue
        elif isinstance(data, str):
            data = encode(data)
        if isinstance(data, (bytes, bytearray, memoryview)):
            yield name, bytes(data)

def describe(value):
    import json
    text, rep, doc = encode(str(value)), b"", b""
    try:
        doc = encode(json.dumps(value, allow_nan=False))
    except Exception:
        pass
    # Always, because whoever reads the JSON may refuse it (api/code_value.h).
    try:
        rep = encode(repr(value))
    except Exception:
        if not doc:
            raise
    return [("text", text), ("json", doc), ("repr", rep)] + list(rich(value))

def figures(value):
    plt = sys.modules.get("matplotlib.pyplot")
    for number in plt.get_fignums() if plt else ():
        figure = plt.figure(number)
        if figure is not value:
            yield [("text", encode(str(figure))), ("png", draw(figure))]
    if plt:
        plt.close("all")

def results(value, shown):
    out = ([describe(value)] if shown else []) + list(figures(value))
    parts = [part for one in out for part in one][:MOST]
    words = [b"%s!" % name.encode() if len(data) > LIMIT and name not in ("text", "repr")
             else b"%s=%d" % (name.encode(), len(data)) for name, data in parts]
    return words and b" ".join(words) + b"\n" + b"".join(
        data for (name, data), word in zip(parts, words) if word[-1:] != b"!")

def complain(name, code):
    import traceback
    kind, error, tb = sys.exc_info()
    while tb and not tb.tb_frame.f_code.co_filename.startswith(name[:5]):
        tb = tb.tb_next
    frame = tb
    while frame and frame.tb_next:
        if frame.tb_next.tb_frame.f_code is interrupt.__code__:
            frame.tb_next = None
        frame = frame.tb_next
    if sys.excepthook is not sys.__excepthook__:
        sys.excepthook(kind, error, tb)
        return
    remember(name, code)
    traceback.print_exception(kind, error, tb)

def remember(name, code):
    import linecache
    linecache.cache[name] = (len(code), None, code.decode("utf-8", "replace").splitlines(True), name)

loop = None

def perform(code, space):
    global loop
    value = eval(code, space)
    if not code.co_flags & 0x80:
        return value
    import asyncio
    if loop is None:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
    task = loop.create_task(value)
    try:
        return loop.run_until_complete(task)
    except BaseException:
        task.cancel()
        raise

def evaluate(kind, code, name, space):
    if kind == b"expr":
        return results(eval(compile(code.lstrip(b" \t"), name, "eval", dont_inherit=True), space), True)
    import ast
    flags = getattr(ast, "PyCF_ALLOW_TOP_LEVEL_AWAIT", 0)
    tree, value = compile(code, name, "exec", ast.PyCF_ONLY_AST | flags, True), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    perform(compile(tree, name, "exec", flags, True), space)
    if last:
        value = perform(compile(ast.Expression(last.value), name, "eval", flags, True), space)
    return results(value, value is not None)

def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass

def failed(error):
    return 130 if isinstance(error, KeyboardInterrupt) else 1

def run(space):
    code = b"".join(iter(lambda: os.read(0, 1 << 20), b""))
    kind, _, code = code.partition(b"\n")
    kind, _, nonce = kind.partition(b" ")
    name = "<eval>" if kind == b"expr" else "<code>"
    try:
        if not kind:
            exec(compile(code, name, "exec", dont_inherit=True), space)
            return
        os.environ.setdefault("MPLBACKEND", "Agg")
        out = evaluate(kind, code, name, space)
    except SystemExit:
        raise
    except BaseException as e:
        complain(name, code)
        sys.exit(failed(e))
    flush()
    if out:
        put(1, b"\0" + nonce + out)

busy = False

def interrupt(*_):
    if busy:
        raise KeyboardInterrupt

def call(kind, code, name, space):
    global busy
    remember(name, code)
    out, status = b"", 0
    try:
        try:
            busy = True
            out = evaluate(kind, code, name, space)
            busy = False
        except SystemExit:
            raise
        except BaseException as e:
            busy, status = False, failed(e)
            complain(name, code)
    except KeyboardInterrupt:
        busy, status = False, 130
    return out, status

def serve(space):
    import binascii, signal
    fd, null, pid, count = os.dup(0), os.open("/dev/null", os.O_RDONLY), os.getpid(), 0
    os.dup2(null, 0)
    os.close(null)
    os.environ.setdefault("MPLBACKEND", "Agg")
    signal.signal(signal.SIGINT, interrupt)
    for line in os.fdopen(fd, "rb"):
        words = line.split()
        try:
            nonce, kind, size, code = words
            code = binascii.a2b_base64(code[1:])
            if len(code) != int(size):
                continue
        except ValueError:
            continue
        count += 1
        put(1, b"\0" + nonce + b"begin\n")
        put(2, b"\0" + nonce + b"begin\n")
        out, status = call(kind, code, "<cell %d>" % count, space)
        flush()
        if os.getpid() != pid:
            os._exit(status)
        if out:
            put(1, b"\0" + nonce + out)
        put(1, b"\0" + nonce + b"end %d\n" % status)
        put(2, b"\0" + nonce + b"end %d\n" % status)

def begin():
    main, driver = types.ModuleType("__main__"), sys.modules["__main__"]
    context = sys.argv[1:] == ["context"]
    sys.modules["__main__"], sys.argv = main, [""]
    (serve if context else run)(main.__dict__)
    return driver

begin()
