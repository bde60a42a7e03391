// SPDX-License-Identifier: Apache-2.0
// An origin that writes down every request that it sees, as one line of JSON each: what it was, how long
// its body, whether that was whole. What its parser refuses is written down, too. Each answer carries the
// id of its request. Arguments: key and certificate for HTTPS on a second port. Prints both ports.
'use strict';
const fs = require('fs');
const http = require('http');
const https = require('https');

const [log, key, cert] = process.argv.slice(2);
const out = fs.openSync(log, 'a');
const write = (entry) => fs.writeSync(out, JSON.stringify(entry) + '\n');

function serve(front) {
  return (request, response) => {
    const entry = {front: request.headers['x-front'] || front, method: request.method, target: request.url,
                   host: request.headers.host, length: 0, id: request.headers['x-id'] || '',
                   whole: false, names: request.rawHeaders.filter((_, i) => i % 2 === 0)};
    request.on('data', (piece) => { entry.length += piece.length; });
    request.on('end', () => {
      entry.whole = true;
      const body = JSON.stringify({id: entry.id, method: entry.method, target: entry.target,
                                   length: entry.length});
      response.writeHead(200, {'X-Id': entry.id, 'Content-Length': Buffer.byteLength(body)});
      response.end(request.method === 'HEAD' ? '' : body);
    });
    request.on('error', () => {});
    request.on('close', () => write(entry));
  };
}

function start(server, front) {
  server.keepAliveTimeout = 60000;
  server.on('request', serve(front));
  server.on('checkContinue', (request, response) => {
    response.writeContinue();
    server.emit('request', request, response);
  });
  server.on('connect', (request, socket) => {
    write({front, method: 'CONNECT', target: request.url, length: 0});
    socket.destroy();
  });
  server.on('clientError', (error, socket) => {
    if (error.code !== 'ECONNRESET')
      write({front, bad: error.code, packet: String(error.rawPacket)});
    socket.destroy();
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server.address().port)));
}

async function main() {
  const plain = await start(http.createServer(), 'plain.test');
  const tls = await start(https.createServer({key: fs.readFileSync(key), cert: fs.readFileSync(cert)}),
                          'node.test');
  console.log(`${plain} ${tls}`);
}

main();
