// SPDX-License-Identifier: Apache-2.0
// The origin of the test of many clients at once: `node at_once.js server CERT KEY FOLDER` serves
// HTTP/2 and HTTP/1.1 on one port, which it prints. `node at_once.js events VERSION HOST FILE` reads
// events and asks for each next one, until FILE is there and fifty have come.
'use strict';
const {spawn} = require('child_process');
const fs = require('fs');
const http2 = require('http2');
const https = require('https');
const path = require('path');

const MIB = 1 << 20;
// Each MiB of a body starts with its number, so that none can be lost, doubled or moved.
const block = Buffer.alloc(MIB, 'all the bytes of a body, in order. ');

function drained(response) {
  return new Promise((go) => {
    const on = () => go(response.off('drain', on).off('close', on));
    response.on('drain', on).on('close', on);
  });
}

async function sendBody(response, mib) {
  response.writeHead(200, {'content-type': 'application/octet-stream'});
  for (let i = 0; i < mib && !response.destroyed; i++) {
    const b = Buffer.from(block);
    b.writeBigUInt64BE(BigInt(i));
    if (!response.write(b)) await drained(response);
  }
  response.end();
}

// Says how many bytes came and whether they were those above.
function takeBody(request, response) {
  let at = 0, same = true;
  const head = Buffer.alloc(8);
  request.on('data', (data) => {
    for (let used = 0; used < data.length;) {
      const inside = at % MIB;
      const n = Math.min(data.length - used, inside < 8 ? 8 - inside : MIB - inside);
      if (inside === 0) head.writeBigUInt64BE(BigInt(at / MIB));
      const want = inside < 8 ? head : block;
      same = same && data.compare(want, inside, inside + n, used, used + n) === 0;
      used += n;
      at += n;
    }
  });
  request.on('end', () => response.end(JSON.stringify({bytes: at, same})));
}

// The next event of a stream is sent when the reader says that it has the one before.
const streams = new Map();

function sendEvents(name, request, response) {
  response.writeHead(200, {'content-type': 'text/event-stream'});
  const data = 'data: ' + request.headers.authorization + '\n\n';
  const send = (n) => response.write('id: ' + n + '\n' + data);
  streams.set(name, {send, end: () => response.end()});
  send(0);
}

// RFC 3875, as far as git needs it.
function runGit(request, response, target, query, folder) {
  const env = {PATH: process.env.PATH, HOME: folder, GIT_PROJECT_ROOT: folder,
    GIT_HTTP_EXPORT_ALL: '1', REMOTE_USER: 'test', REQUEST_METHOD: request.method,
    PATH_INFO: target, QUERY_STRING: query || '',
    CONTENT_TYPE: request.headers['content-type'] || '',
    HTTP_CONTENT_ENCODING: request.headers['content-encoding'] || '',
    GIT_PROTOCOL: request.headers['git-protocol'] || ''};
  const child = spawn('git', ['http-backend'], {stdio: ['pipe', 'pipe', 'inherit'], env});
  let head = Buffer.alloc(0), begun = false;
  child.stdin.on('error', () => {});
  request.pipe(child.stdin);
  child.stdout.on('data', (data) => {
    if (begun) return response.write(data);
    head = Buffer.concat([head, data]);
    const end = head.indexOf('\r\n\r\n');
    if (end < 0) return undefined;
    let status = 200;
    for (const line of head.subarray(0, end).toString().split('\r\n')) {
      const [name, value] = line.split(': ');
      if (name === 'Status') status = parseInt(value, 10);
      else response.setHeader(name, value);
    }
    begun = true;
    response.writeHead(status);
    return response.write(head.subarray(end + 4));
  });
  child.stdout.on('end', () => response.end());
}

function sendFile(response, name, type) {
  fs.readFile(name, (error, data) => {
    response.writeHead(error ? 404 : 200, {'content-type': type});
    response.end(error ? '' : data);
  });
}

function answer(folder, request, response) {
  const [target, query] = request.url.split('?');
  const [, what, name] = target.split('/');
  const last = path.basename(target);
  if (what === 'down') sendBody(response, parseInt(name, 10));
  else if (what === 'up') takeBody(request, response);
  else if (what === 'events') sendEvents(name, request, response);
  else if (what === 'next' || what === 'end') {
    streams.get(name)[what === 'next' ? 'send' : 'end'](query);
    response.end();
  } else if (what === 'repo.git') runGit(request, response, target, query, folder);
  else if (what === 'files') sendFile(response, path.join(folder, last), 'application/octet-stream');
  else sendFile(response, path.join(folder, last + '.json'), 'application/json');
}

function server(cert, key, folder) {
  const s = http2.createSecureServer({cert: fs.readFileSync(cert), key: fs.readFileSync(key),
    allowHTTP1: true}, (request, response) => answer(folder, request, response));
  s.listen(0, '127.0.0.1', () => console.log(s.address().port));
}

// --- the reader ---

function asker(version, host) {
  if (version === '1') {
    return (target, then) => https.get(
      {host, path: target, headers: {authorization: 'Bearer ' + process.env.TOKEN}}, then);
  }
  const client = http2.connect('https://' + host);
  return (target, then) => {
    const r = client.request({':path': target, authorization: 'Bearer ' + process.env.TOKEN});
    r.on('response', () => then(r));
    r.on('end', () => { if (target.startsWith('/events')) client.close(); });
  };
}

function events(version, host, file) {
  const ask = asker(version, host), saw = {events: 0, ordered: true, secret: false};
  let text = '';
  ask('/events/' + version, (response) => {
    response.on('data', (data) => {
      text += data;
      for (let end; (end = text.indexOf('\n\n')) >= 0; text = text.slice(end + 2)) {
        const [id, value] = text.slice(0, end).split('\n');
        saw.ordered = saw.ordered && id === 'id: ' + saw.events++;
        saw.secret = saw.secret || value !== 'data: Bearer ' + process.env.TOKEN;
        const over = saw.events >= 50 && fs.existsSync(file);
        ask(over ? '/end/' + version : '/next/' + version + '?' + saw.events, (r) => r.resume());
      }
    });
    response.on('end', () => console.log(JSON.stringify(saw)));
  });
}

const [what, ...rest] = process.argv.slice(2);
if (what === 'server') server(...rest);
else events(...rest);
