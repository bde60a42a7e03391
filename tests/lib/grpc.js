// SPDX-License-Identifier: Apache-2.0
// Both ends of the gRPC test. `node grpc.js server CERT KEY` prints its port; `node grpc.js client
// ADDRESS TEST` runs one test and prints a JSON object. Messages are plain buffers, so that no
// schema is needed.
'use strict';
const fs = require('fs');
const grpc = require('@grpc/grpc-js');

const BIG = 4 * 1024 * 1024;
const OPTIONS = {
  'grpc.max_receive_message_length': 2 * BIG,
  'grpc.max_send_message_length': 2 * BIG,
};
const same = (bytes) => bytes;

function method(name, requestStream, responseStream) {
  return {
    path: '/cloche.Test/' + name, requestStream, responseStream,
    requestSerialize: same, requestDeserialize: same,
    responseSerialize: same, responseDeserialize: same,
  };
}

const service = {
  echo: method('Echo', false, false),
  list: method('List', false, true),
  count: method('Count', true, false),
  talk: method('Talk', true, true),
  fail: method('Fail', false, false),
  hang: method('Hang', false, false),
  hung: method('Hung', false, false),
};

function serve(cert, key) {
  let cancelled = 0;
  const server = new grpc.Server(OPTIONS);
  server.addService(service, {
    echo(call, done) {
      const trailers = new grpc.Metadata();
      trailers.set('x-seen', String(call.metadata.get('x-own')));
      call.sendMetadata(new grpc.Metadata());
      done(null, call.request, trailers);
    },
    list(call) {
      for (let i = 0; i < 1000; i++) call.write(Buffer.from('item ' + i));
      call.end();
    },
    count(call, done) {
      let n = 0, bytes = 0;
      call.on('data', (m) => { n++; bytes += m.length; });
      call.on('end', () => done(null, Buffer.from(n + ' ' + bytes)));
    },
    talk(call) {
      call.on('data', (m) => call.write(m));
      call.on('end', () => call.end());
    },
    fail(call, done) {
      const metadata = new grpc.Metadata();
      metadata.set('x-why', 'because');
      done({code: grpc.status.NOT_FOUND, details: 'no such thing: 100 %', metadata});
    },
    hang(call) { call.on('cancelled', () => { cancelled++; }); },
    hung(call, done) { done(null, Buffer.from(String(cancelled))); },
  });
  const credentials = grpc.ServerCredentials.createSsl(
      null, [{cert_chain: fs.readFileSync(cert), private_key: fs.readFileSync(key)}]);
  server.bindAsync('127.0.0.1:0', credentials, (error, port) => {
    if (error) throw error;
    console.log(port);
  });
}

const soon = (s) => Date.now() + s * 1000;
const deadline = (s) => ({deadline: soon(s)});

const tests = {
  unary(client, done) {
    const metadata = new grpc.Metadata();
    metadata.set('x-own', 'mine');
    client.echo(Buffer.from('hello'), metadata, deadline(45), (error, answer) => {
      done({error: error && error.message, answer: answer && answer.toString()});
    }).on('status', (s) => { tests.status = s; });
  },
  big(client, done) {
    const message = Buffer.alloc(BIG);
    for (let i = 0; i < BIG; i += 4) message.writeUInt32LE(i * 2654435761 % 4294967296, i);
    client.echo(message, new grpc.Metadata(), deadline(90), (error, answer) => {
      done({error: error && error.message, same: !!answer && answer.equals(message)});
    });
  },
  compressed(client, done) {
    tests.big(client, done);
  },
  server_stream(client, done) {
    const call = client.list(Buffer.alloc(0), deadline(45));
    let n = 0, ordered = true;
    call.on('data', (m) => { ordered = ordered && m.toString() === 'item ' + n++; });
    call.on('error', () => {});
    call.on('status', (s) => done({code: s.code, n, ordered}));
  },
  client_stream(client, done) {
    const call = client.count(new grpc.Metadata(), deadline(45), (error, answer) => {
      done({error: error && error.message, answer: answer && answer.toString()});
    });
    for (let i = 0; i < 1000; i++) call.write(Buffer.alloc(100));
    call.end();
  },
  bidi(client, done) {
    const total = 10000, call = client.talk(new grpc.Metadata(), deadline(90));
    let sent = 0, got = 0, ordered = true;
    const say = () => { call.write(Buffer.from('message ' + sent++)); };
    call.on('data', (m) => {
      ordered = ordered && m.toString() === 'message ' + got++;
      if (sent < total) say();
      else if (got === total) call.end();
    });
    call.on('error', () => {});
    call.on('status', (s) => done({code: s.code, got, ordered}));
    for (let i = 0; i < 16; i++) say();
  },
  stay(client, done) { // until something ends it; a line for each answer
    const call = client.talk(new grpc.Metadata());
    const say = () => call.write(Buffer.from('again'));
    call.on('data', () => { console.log('got'); setTimeout(say, 10); });
    call.on('error', () => {});
    call.on('status', (s) => done({code: s.code, details: s.details}));
    say();
  },
  error(client, done) {
    client.fail(Buffer.alloc(0), new grpc.Metadata(), deadline(45), (error) => {
      done({code: error.code, details: error.details, why: error.metadata.get('x-why')[0]});
    });
  },
  late(client, done) {
    client.hang(Buffer.alloc(0), new grpc.Metadata(), deadline(0.5), (error) => {
      setTimeout(() => client.hung(Buffer.alloc(0), (e, n) => {
        done({code: error.code, cancelled: n && n.toString()});
      }), 500);
    });
  },
  cancel(client, done) {
    const call = client.hang(Buffer.alloc(0), new grpc.Metadata(), deadline(45), (error) => {
      setTimeout(() => client.hung(Buffer.alloc(0), (e, n) => {
        done({code: error.code, cancelled: n && n.toString()});
      }), 500);
    });
    setTimeout(() => call.cancel(), 300);
  },
};

function run(address, name) {
  const options = Object.assign({}, OPTIONS);
  if (name === 'compressed') options['grpc.default_compression_algorithm'] = 2;
  const Client = grpc.makeGenericClientConstructor(service, 'Test');
  const client = new Client(address, grpc.credentials.createSsl(), options);
  tests[name](client, (result) => {
    // The status comes right behind the answer.
    setImmediate(() => {
      const seen = tests.status && tests.status.metadata.get('x-seen')[0];
      console.log(JSON.stringify(Object.assign({test: name, seen}, result)));
      client.close();
    });
  });
}

if (process.argv[2] === 'server') serve(process.argv[3], process.argv[4]);
else run(process.argv[3], process.argv[4]);
