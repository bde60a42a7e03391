// SPDX-License-Identifier: Apache-2.0
// Both ends of the WebSocket test. `node websocket.js server CERT KEY` prints its port and then one line
// for each connection that has ended; `node websocket.js client HOST:PORT NAME` prints what it saw as JSON.
'use strict';
const fs = require('fs');
const https = require('https');
const {WebSocket, WebSocketServer} = require('ws');

const BIG = 10 * 1000 * 1000;
const pattern = (n) => Buffer.alloc(n, 'abcdefghijklmnopqrstuvwxyz');

const serverSide = {
  '/echo': (ws) => ws.on('message', (data, binary) => ws.send(data, {binary})),
  '/ping': (ws) => {
    ws.on('pong', (data) => ws.send('pong ' + data));
    ws.ping('are you there?');
  },
  '/close': (ws) => ws.close(4001, 'enough'),
  '/fragments': (ws) => {
    for (let i = 0; i < 100; i++) ws.send('piece ' + i + ';', {fin: i === 99});
  },
  '/die': (ws) => ws.once('message', () => ws.terminate()),
  '/exit': (ws) => ws.once('message', () => process.exit(1)),
  '/hello': (ws, request) => ws.send(JSON.stringify(request.headers)),
};

function server(cert, key) {
  const web = https.createServer({cert: fs.readFileSync(cert), key: fs.readFileSync(key)},
    (request, response) => response.end('plain\n'));
  // It would compress, if it were asked to.
  const all = new WebSocketServer({server: web, perMessageDeflate: {threshold: 0},
    handleProtocols: (offered) => offered.values().next().value});
  all.on('connection', (ws, request) => {
    ws.on('close', (code) => console.log(request.url + ' ' + code));
    ws.on('error', () => {});
    serverSide[request.url](ws, request);
  });
  web.listen(0, '127.0.0.1', () => console.log(web.address().port));
}

const clientSide = {
  // One after the other, and all at once.
  thousand(ws, done) {
    let got = 0;
    ws.on('open', () => { for (let i = 0; i < 1000; i++) ws.send('message ' + i); });
    ws.on('message', (data) => {
      if (String(data) !== 'message ' + got) return done({wrong: String(data), at: got});
      if (++got === 1000) ws.close(1000);
    });
    ws.on('close', (code) => done({got, code}));
  },
  big(ws, done) {
    let same = 0;
    ws.on('open', () => { for (let i = 0; i < 3; i++) ws.send(pattern(BIG + i)); });
    ws.on('message', (data) => {
      same += data.equals(pattern(BIG + same));
      if (same === 3 || !data.equals(pattern(data.length))) ws.close();
    });
    ws.on('close', (code) => done({same, code}));
  },
  pieces(ws, done) {
    ws.on('open', () => {
      for (let i = 0; i < 50; i++) ws.send('part ' + i + ';', {fin: i === 49});
    });
    ws.on('message', (data) => done({text: String(data)}));
  },
  listen(ws, done, {events}) { // says nothing, tells what comes: so much of it, or all
    const seen = [];
    const note = (text) => {
      if (seen.push(text) === events) ws.close(1000);
    };
    ws.on('ping', (data) => note('ping ' + data));
    ws.on('message', (data) => note(String(data)));
    ws.on('close', (code, reason) => done({seen, code, reason: String(reason)}));
  },
  poke(ws, done) { // one message, then whatever comes of it
    ws.on('open', () => ws.send('poke'));
    ws.on('close', (code) => done({code}));
  },
  stay(ws) { // until it is killed
    ws.on('open', () => {
      console.log('open');
      setInterval(() => ws.send('still here'), 50);
    });
  },
};

function client(host, name, path, options) {
  const ws = new WebSocket('wss://' + host + path, options.protocols || [],
    {headers: options.headers || {}, perMessageDeflate: true,
      ca: options.ca ? fs.readFileSync(options.ca) : undefined, maxPayload: 2 * BIG});
  const done = (what) => {
    console.log(JSON.stringify(Object.assign(
      {extensions: ws.extensions, protocol: ws.protocol}, what)));
    process.exit(0);
  };
  ws.on('error', (error) => done({error: error.message}));
  clientSide[name](ws, done, options);
}

const [what, ...rest] = process.argv.slice(2);
if (what === 'server') server(...rest);
else client(rest[0], rest[1], rest[2], JSON.parse(rest[3] || '{}'));
