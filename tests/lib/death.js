// SPDX-License-Identifier: Apache-2.0
// The origin of the test of a network that dies: answers that never end, in every framing. It
// prints its ports, then a line for each TCP connection that comes (+), and for each request how it
// ended. Bodies are numbers of four bytes, one after the other.
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const http2 = require('http2');

const NUMBERS = 1024, EVERY_MS = 10;

function numbers(from) {
  const b = Buffer.alloc(4 * NUMBERS);
  for (let i = 0; i < NUMBERS; i++) b.writeUInt32BE((from + i) >>> 0, 4 * i);
  return b;
}

function send(request, response) {
  let at = 0;
  const more = () => {
    const taken = response.write(numbers(at));
    at += NUMBERS;
    return taken;
  };
  let gone = false;
  response.on('close', () => { gone = true; });
  const flood = () => { for (let i = 0; i < 64 && !gone && more(); i++); };
  if (request.url === '/flood') {
    response.on('drain', flood);
    flood();
    return;
  }
  const timer = setInterval(() => { if (!response.writableNeedDrain) more(); }, EVERY_MS);
  response.on('close', () => clearInterval(timer));
}

function answer(request, response) {
  const name = request.url;
  request.on('error', () => {});
  response.on('error', () => {});
  if (name === '/up') {
    let at = 0, rest = Buffer.alloc(0), aborted = false;
    request.on('data', (data) => {
      rest = Buffer.concat([rest, data]);
      for (; rest.length >= 4; rest = rest.subarray(4)) {
        if (rest.readUInt32BE(0) !== at++) console.log('wrong ' + name);
      }
    });
    // Of HTTP/2 node says 'end' in both cases, and only behind it that it was none.
    request.on('aborted', () => { aborted = true; });
    request.on('end', () => setTimeout(() => {
      if (!aborted) console.log('complete ' + name);
      response.end('all of it');
    }, 100));
    return;
  }
  if (name === '/sink') {
    request.resume();
    return;
  }
  response.on('close', () => console.log('closed ' + name));
  if (name === '/length') response.setHeader('content-length', 2 ** 40);
  if (name === '/close') {
    if (request.httpVersion[0] === '1') response.setHeader('connection', 'close');
    response.removeHeader('transfer-encoding');
    response.useChunkedEncodingByDefault = false;
  }
  if (name === '/hello') response.end('hello');
  else send(request, response);
}

function upgrade(request, socket) {
  const accept = crypto.createHash('sha1').update(
    request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64');
  socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
    'Sec-WebSocket-Accept: ' + accept + '\r\n\r\n');
  let at = 0;
  const timer = setInterval(() => {
    if (socket.writableNeedDrain) return;
    socket.write(Buffer.from([0x82, 126, 4 * NUMBERS >> 8, 4 * NUMBERS & 255]));
    socket.write(numbers(at));
    at += NUMBERS;
  }, EVERY_MS);
  socket.on('error', () => {});
  socket.on('close', () => { clearInterval(timer); console.log('closed ' + request.url); });
  socket.resume();
}

function serve(s) {
  s.on('connection', (socket) => {
    console.log('+');
    socket.on('error', () => {});
  });
  s.on('upgrade', upgrade);
  s.on('sessionError', () => {});
  return new Promise((done) => s.listen(0, '127.0.0.1', () => done(s.address().port)));
}

const [cert, key] = process.argv.slice(2).map((f) => fs.readFileSync(f));
Promise.all([serve(http2.createSecureServer({cert, key, allowHTTP1: true,
  maxSessionMemory: 1000}, answer)),
  serve(http.createServer(answer))]).then((ports) => console.log(ports.join(' ')));
