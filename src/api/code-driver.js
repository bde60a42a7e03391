// SPDX-License-Identifier: Apache-2.0
// What "node -e" is given for code of somebody else. Standard input has a line, then the code as it
// is, up to its end. The line is empty for a program; for an expression it is the nonce behind which
// the value goes (api/code_value.h). Lines that are comments do not reach the command line.
(() => {
  const fs = require('fs'), Module = require('module'), path = require('path'), util = require('util'), vm = require('vm');
  const input = fs.readFileSync(0), line = input.indexOf(10);
  const nonce = input.toString('latin1', 0, line), code = input.toString('utf8', line + 1).replace(/^\ufeff/, '').replace(/^#!/, '//');
  const loader = vm.constants && vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;
  let settled = true;
  process.execArgv = [];
  // A pipe that is full would lose what is written before the process ends by itself.
  for (const stream of [process.stdout, process.stderr])
    if (stream._handle && stream._handle.setBlocking) stream._handle.setBlocking(true);
  process.on('exit', status => {
    if (settled || status) return;
    fs.writeSync(2, 'a promise was awaited that nothing settles any more\n');
    process.exitCode = 13;
  });
  const wait = promise => {
    settled = false;
    return promise.then(value => { settled = true; return value; });
  };

  const give = value => {
    const text = Buffer.from(util.format(value));
    let json;
    try {
      json = JSON.stringify(value, (key, v) => {
        if (typeof v === 'number' && !Number.isFinite(v)) throw new RangeError('not JSON');
        return v;
      });
    } catch (e) {}
    json = Buffer.from(json === undefined ? '' : json);
    const all = Buffer.concat([Buffer.from(`\0${nonce}${text.length} ${json.length} 0\n`), text, json]);
    for (let at = 0; at < all.length;) at += fs.writeSync(1, all, at);
  };
  if (nonce) {
    const value = vm.runInThisContext(code, { filename: '[eval]', importModuleDynamically: loader });
    const then = value !== null && (typeof value === 'object' || typeof value === 'function') && value.then;
    if (typeof then === 'function') wait(Promise.resolve(value)).then(give);
    else give(value);
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
