# SPDX-License-Identifier: Apache-2.0
# What "python3 -c" is given for code of somebody else. Standard input has a line, then the code as it
# is, up to its end. The line is empty for a program; for an expression it is the nonce behind which
# the value goes (api/code_value.h). Lines that are comments do not reach the command line.
import os, sys, types

def give(nonce, value):
    import json
    text, doc, rep = str(value), "", ""
    try:
        doc = json.dumps(value, allow_nan=False)
    except Exception:
        rep = repr(value)
    parts = [p.encode("utf-8", "backslashreplace") for p in (text, doc, rep)]
    out = b"\0" + nonce + b"%d %d %d\n" % tuple(len(p) for p in parts) + b"".join(parts)
    try:
        sys.stdout.flush()
    except Exception:
        pass
    while out:
        out = out[os.write(1, out):]

def complain(name, code):
    import linecache, traceback
    kind, error, tb = sys.exc_info()
    while tb and tb.tb_frame.f_code.co_filename != name:
        tb = tb.tb_next
    if sys.excepthook is not sys.__excepthook__:
        sys.excepthook(kind, error, tb)
        return
    lines = code.decode("utf-8", "replace").splitlines(True)
    linecache.cache[name] = (len(code), None, lines, name)
    traceback.print_exception(kind, error, tb)

def run():
    code = b"".join(iter(lambda: os.read(0, 1 << 20), b""))
    nonce, _, code = code.partition(b"\n")
    name = "<eval>" if nonce else "<code>"
    main = types.ModuleType("__main__")
    keep = sys.modules["__main__"]
    sys.modules["__main__"] = main
    sys.argv = [""]
    try:
        if nonce:
            give(nonce, eval(compile(code.lstrip(b" \t"), name, "eval", dont_inherit=True), main.__dict__))
        else:
            exec(compile(code, name, "exec", dont_inherit=True), main.__dict__)
    except SystemExit:
        raise
    except BaseException as e:
        complain(name, code)
        sys.exit(130 if isinstance(e, KeyboardInterrupt) else 1)

run()
