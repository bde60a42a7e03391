// SPDX-License-Identifier: Apache-2.0
// What "node -e" is given for code of somebody else. Lines that are comments do not reach the command
// line. What it says of results goes behind marks (api/code_value.h).
//
// Standard input has a line, then the code as it is, up to its end. The line is empty for a program;
// else it is "expr" or "cell" and the nonce of the marks. With the argument "context" it has no end,
// but a line for each call: nonce, "expr" or "cell", how many bytes of code, "=" and these in base64.
// What is no such line was left by a caller who died amid it.
(() => {
  const fs = require('fs'), Module = require('module'), path = require('path'), util = require('util'), vm = require('vm');
  const loader = vm.constants && vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;
  const LIMIT = 8 << 20;
  // What Deno's kernel for notebooks calls; others have no convention.
  const DISPLAY = Symbol.for('Jupyter.display');
  const TYPES = [['html', 'text/html'], ['markdown', 'text/markdown'], ['latex', 'text/latex'],
    ['svg', 'image/svg+xml'], ['png', 'image/png'], ['jpeg', 'image/jpeg']];
  const inContext = process.argv[1] === 'context';
  process.argv.length = 1;
  process.execArgv = [];
  // A pipe that is full would lose what is written before the process ends by itself.
  for (const stream of [process.stdout, process.stderr])
    if (stream._handle && stream._handle.setBlocking) stream._handle.setBlocking(true);
  const put = (fd, bytes) => {
    for (let at = 0; at < bytes.length;) at += fs.writeSync(fd, bytes, at);
  };

  const represent = async value => {
    const text = Buffer.from(util.format(value)), parts = [['text', text]];
    let json, shown;
    try {
      json = JSON.stringify(value, (key, v) => {
        if (typeof v === 'number' && !Number.isFinite(v)) throw new RangeError('not JSON');
        return v;
      });
    } catch (e) {}
    // Half a surrogate pair is escaped, which no UTF-8 can hold.
    if (json !== undefined)
      parts.push(['json', Buffer.from(json.replace(/\\(\\|ud[89a-f]..)/g, (all, x) => x === '\\' ? all : '\\ufffd'))]);
    try {
      if (value && typeof value[DISPLAY] === 'function') shown = await value[DISPLAY]();
    } catch (e) {}
    for (const [name, mime] of TYPES) {
      const data = shown && shown[mime], binary = name === 'png' || name === 'jpeg';
      if (typeof data === 'string') parts.push([name, Buffer.from(data, binary ? 'base64' : 'utf8')]);
      else if (data instanceof Uint8Array) parts.push([name, Buffer.from(data)]);
    }
    const large = ([name, data]) => name !== 'text' && data.length > LIMIT;
    const words = parts.map(part => part[0] + (large(part) ? '!' : '=' + part[1].length));
    return Buffer.concat([Buffer.from(words.join(' ') + '\n'), ...parts.filter(part => !large(part)).map(part => part[1])]);
  };
  const isPromise = v => v !== null && (typeof v === 'object' || typeof v === 'function') && typeof v.then === 'function';
  const clean = text => text.replace(/^\ufeff/, '').replace(/^#!/, '//');

  const serve = () => {
    const net = require('net'), { PassThrough } = require('stream');
    const input = fs.openSync('/proc/self/fd/0');
    let line = [], queue = Promise.resolve(), count = 0, shell, interrupt = () => 0, refuse;
    fs.closeSync(0);
    fs.openSync('/dev/null');
    const complain = e => {
      let text = e instanceof Error ? util.inspect(e) : 'Uncaught ' + util.inspect(e);
      text = text.split('\n').filter(l => !/^ +at .*(\[eval\]|node:(vm|repl|domain|internal))/.test(l)).join('\n');
      put(2, Buffer.from(text + '\n'));
    };
    refuse = complain;
    // An interrupt may end code amid a write, and a stream would wait for the end of that for ever.
    for (const stream of [process.stdout, process.stderr])
      stream.write = (data, encoding, done) => {
        if (typeof encoding === 'function') [encoding, done] = [undefined, encoding];
        put(stream.fd, typeof data === 'string' ? Buffer.from(data, encoding) : data);
        if (done) process.nextTick(done);
        return true;
      };
    // "await" outside of functions, with declarations that stay: as the interpreter's own prompt has it.
    const evaluateAwait = (code, name) => new Promise((resolve, reject) => {
      if (!shell) {
        shell = require('repl').start({ prompt: '', input: new PassThrough(), output: new PassThrough().resume(), useGlobal: true });
        // Where it tells of what is thrown.
        shell._domain.on('error', e => refuse(e));
      }
      refuse = e => {
        refuse = complain;
        reject(e);
      };
      shell.eval(code, shell.context, name, (e, value) => e ? reject(e) : resolve(value));
    });
    const evaluate = (code, name) => {
      try {
        return vm.runInThisContext(code, { filename: name, importModuleDynamically: loader, breakOnSigint: true });
      } catch (e) {
        if (!(e instanceof SyntaxError) || !/\bawait\b/.test(code)) throw e;
        return evaluateAwait(code, name);
      }
    };
    const call = async (nonce, kind, code) => {
      const say = (fd, text) => put(fd, Buffer.from(`\0${nonce}${text}\n`));
      let out, status = 0;
      say(1, 'begin');
      say(2, 'begin');
      const interrupted = new Promise((resolve, reject) => {
        interrupt = () => reject(Object.assign(new Error('interrupted'), { code: 'ERR_SCRIPT_EXECUTION_INTERRUPTED' }));
      });
      interrupted.catch(() => 0);
      try {
        let value = evaluate(clean(code), `[cell ${++count}]`);
        if (isPromise(value)) value = await Promise.race([value, interrupted]);
        if (kind === 'expr' || value !== undefined) out = await Promise.race([represent(value), interrupted]);
      } catch (e) {
        status = e && e.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED' ? 130 : 1;
        if (status === 130) put(2, Buffer.from('interrupted\n'));
        else complain(e);
      }
      interrupt = () => 0;
      if (out) put(1, Buffer.concat([Buffer.from(`\0${nonce}`), out]));
      say(1, 'end ' + status);
      say(2, 'end ' + status);
    };
    const request = text => {
      const words = text.split(' ');
      if (words.length !== 4) return;
      const code = Buffer.from(words[3].slice(1), 'base64');
      if (code.length === +words[2]) queue = queue.then(() => call(words[0], words[1], code.toString()));
    };
    process.on('SIGINT', () => interrupt());
    process.on('uncaughtException', complain);
    process.on('unhandledRejection', complain);
    new net.Socket({ fd: input, readable: true, writable: false }).on('data', chunk => {
      for (let at; (at = chunk.indexOf(10)) >= 0; chunk = chunk.subarray(at + 1)) {
        line.push(chunk.subarray(0, at));
        request(Buffer.concat(line).toString('latin1'));
        line = [];
      }
      line.push(Buffer.from(chunk));
    });
  };
  if (inContext) {
    serve();
    return;
  }

  const input = fs.readFileSync(0), line = input.indexOf(10);
  const [kind, nonce] = input.toString('latin1', 0, line).split(' '), code = clean(input.toString('utf8', line + 1));
  let settled = true;
  process.on('exit', status => {
    if (settled || status) return;
    fs.writeSync(2, 'a promise was awaited that nothing settles any more\n');
    process.exitCode = 13;
  });
  const wait = promise => {
    settled = false;
    return promise.then(value => { settled = true; return value; });
  };
  const give = async value => {
    if (kind !== 'expr' && value === undefined) return;
    put(1, Buffer.concat([Buffer.from(`\0${nonce}`), await represent(value)]));
  };
  if (nonce) {
    const value = vm.runInThisContext(code, { filename: kind === 'expr' ? '[eval]' : '[code]', importModuleDynamically: loader });
    if (isPromise(value)) wait(Promise.resolve(value).then(give));
    else wait(give(value));
    return;
  }

  const file = path.join(process.cwd(), '[code]'), main = new Module('.', null);
  const names = ['exports', 'require', 'module', '__filename', '__dirname'];
  main.filename = file;
  main.paths = Module._nodeModulePaths(process.cwd());
  process.mainModule = main;
  let run;
  try {
    run = vm.compileFunction(code, names, { filename: '[code]', importModuleDynamically: loader });
  } catch (e) {
    if (!/\bawait\b/.test(code)) throw e;
    try {
      const AsyncFunction = (async () => {}).constructor;
      run = new AsyncFunction(...names, code + '\n//# sourceURL=[code]');
    } catch (again) {}
    if (!run) throw e;
  }
  const ended = run.call(main.exports, main.exports, Module.createRequire(file), main, file, process.cwd());
  main.loaded = true;
  if (ended instanceof Promise && run.constructor !== Function) wait(ended);
})();
