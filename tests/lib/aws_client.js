// SPDX-License-Identifier: Apache-2.0
// What a room does with surrogates: node aws_client.js refused, sdk MIB, modes UNIT (the larger bodies are
// some of so many bytes), or many COUNT SEED, with packages in /npm.
"use strict";
const crypto = require("crypto");
const fs = require("fs");
const https = require("https");
const { Readable } = require("stream");
const npm = "/npm/node_modules/";
const id = process.env.AWS_ACCESS_KEY_ID, secret = process.env.AWS_SECRET_ACCESS_KEY, token = process.env.AWS_SESSION_TOKEN || "";
const EMPTY = crypto.createHash("sha256").digest("hex");
const sha256 = (b) => crypto.createHash("sha256").update(b).digest("hex");
const hmac = (key, text) => crypto.createHmac("sha256", key).update(text).digest();
const MIB = 1 << 20;

function same(a, b, what) {
  if (!Buffer.from(a).equals(Buffer.from(b))) throw new Error(what + ": other bytes");
}

// --- the SDK ---

async function sdk(mib) {
  const { S3Client, PutObjectCommand, GetObjectCommand, HeadObjectCommand } = require(npm + "@aws-sdk/client-s3");
  const { Upload } = require(npm + "@aws-sdk/lib-storage");
  const { getSignedUrl } = require(npm + "@aws-sdk/s3-request-presigner");
  const s3 = new S3Client({ endpoint: "https://s3.test", forcePathStyle: true });
  const at = { Bucket: "bucket", Key: "some dir/(x)+y/ü~*'!" };
  const roundTrip = async (data, more, what) => {
    await s3.send(new PutObjectCommand({ ...at, Body: data, ...more }));
    const got = await s3.send(new GetObjectCommand(at));
    same(await got.Body.transformToByteArray(), data, what);
  };
  for (const size of [0, 1, 5 * MIB]) await roundTrip(crypto.randomBytes(size), {}, "size " + size);
  for (const ChecksumAlgorithm of ["CRC32", "CRC32C", "SHA1", "SHA256"])
    await roundTrip(crypto.randomBytes(100001), { ChecksumAlgorithm }, ChecksumAlgorithm);
  const big = crypto.randomBytes(Number(mib) * MIB);
  for (const [ChecksumAlgorithm, size] of [["CRC32", big.length], ["SHA256", 6 * MIB]]) {
    const data = big.subarray(0, size);
    const stream = Readable.from((function* () { for (let i = 0; i < data.length; i += 65536) yield data.subarray(i, i + 65536); })());
    await new Upload({ client: s3, params: { ...at, Body: stream, ChecksumAlgorithm }, partSize: 5 * MIB }).done();
    if ((await s3.send(new HeadObjectCommand(at))).ContentLength !== size) throw new Error("HEAD");
    same(await (await s3.send(new GetObjectCommand(at))).Body.transformToByteArray(), data, "upload of " + size);
  }
  // A stream of known length: aws-chunked with a trailer.
  await s3.send(new PutObjectCommand({ ...at, Body: Readable.from([Buffer.alloc(300000, "x")]), ContentLength: 300000 }));
  const put = await getSignedUrl(s3, new PutObjectCommand({ ...at, Metadata: { a: "b  c" } }), { unhoistableHeaders: new Set(["x-amz-meta-a"]) });
  await request("PUT", put, { "x-amz-meta-a": "b  c" }, "presigned body");
  same((await request("GET", await getSignedUrl(s3, new GetObjectCommand(at)), {})).body, "presigned body", "presigned");
  console.log("sdk done");
}

// --- requests by hand ---

function request(method, url, headers, body, want = 200) {
  const u = new URL(url);
  const path = url.slice(u.origin.length);
  return new Promise((resolve, reject) => {
    const req = https.request({ method, host: u.hostname, path, headers }, (res) => {
      const pieces = [];
      res.on("data", (d) => pieces.push(d));
      res.on("error", reject);
      res.on("end", () => {
        const answer = Buffer.concat(pieces);
        if (want && res.statusCode !== want) reject(new Error(`${method} ${url.slice(0, 200)}: ${res.statusCode} ${answer.toString().slice(0, 400)}`));
        else resolve({ status: res.statusCode, body: answer });
      });
    });
    req.on("error", reject);
    if (body && body[Symbol.asyncIterator] && !Buffer.isBuffer(body)) Readable.from(body).pipe(req);
    else req.end(body);
  });
}

const iso = (d = new Date()) => d.toISOString().replace(/[-:]|\.\d+/g, "");
const encode = (s) => encodeURIComponent(s).replace(/[!'()*]/g, (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase());

function ecdsaKey() {
  for (let counter = 1; ; counter++) {
    const text = Buffer.concat([Buffer.from([0, 0, 0, 1]), Buffer.from("AWS4-ECDSA-P256-SHA256\0" + id), Buffer.from([counter, 0, 0, 1, 0])]);
    const c = BigInt("0x" + hmac("AWS4A" + secret, text).toString("hex"));
    if (c > BigInt("0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551") - 2n) continue;
    const d = Buffer.from((c + 1n).toString(16).padStart(64, "0"), "hex"), ecdh = crypto.createECDH("prime256v1");
    ecdh.setPrivateKey(d);
    const p = ecdh.getPublicKey();
    return crypto.createPrivateKey({ format: "jwk", key: { kty: "EC", crv: "P-256", d: d.toString("base64url"),
      x: p.subarray(1, 33).toString("base64url"), y: p.subarray(33).toString("base64url") } });
  }
}

function signer(algorithm, time, region, service) {
  const ecdsa = algorithm === "AWS4-ECDSA-P256-SHA256";
  const scope = [time.slice(0, 8), ...(ecdsa ? [] : [region]), service, "aws4_request"].join("/");
  const key = ecdsa ? ecdsaKey() : ["aws4_request"].reduce(hmac, hmac(hmac(hmac("AWS4" + secret, time.slice(0, 8)), region), service));
  return { scope, sign: (text) => (ecdsa ? crypto.createSign("SHA256").update(text).sign(key).toString("hex") : hmac(key, text).toString("hex")) };
}

// Header authentication, the query and path as given.
function signed(method, url, headers, payload, o = {}) {
  const algorithm = o.algorithm || "AWS4-HMAC-SHA256", service = o.service || "s3", time = o.time || iso();
  const u = new URL(url), s = signer(algorithm, time, "eu-central-1", service);
  const all = { host: u.hostname, ...headers };
  if (!o.httpDate) all["x-amz-date"] = time;
  if (token && !o.tokenAfter) all["x-amz-security-token"] = token;
  if (o.stated !== false) all["x-amz-content-sha256"] = payload;
  if (algorithm.includes("ECDSA")) all["x-amz-region-set"] = "eu-*";
  const names = Object.keys(all).map((n) => n.toLowerCase()).sort();
  const value = (n) => [].concat(all[Object.keys(all).find((k) => k.toLowerCase() === n)]).map((v) => String(v).trim().replace(/\s+/g, " ")).join(",");
  const [path, query = ""] = url.slice(u.origin.length).split(/\?(.*)/s);
  const sorted = query.split("&").filter((x) => x).map((x) => (x.includes("=") ? x : x + "=")).map((x) => x.split(/=(.*)/s).slice(0, 2))
    .sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] < b[1] ? -1 : 1)).map((x) => x.join("=")).join("&");
  const twice = service === "s3" ? path : path.split("/").map(encode).join("/");
  const canonical = [method, twice, sorted, ...names.map((n) => n + ":" + value(n)), "", names.join(";"), payload].join("\n");
  const signature = s.sign([algorithm, time, s.scope, sha256(canonical)].join("\n"));
  delete all.host;
  if (token && o.tokenAfter) all["x-amz-security-token"] = token;
  all.Authorization = `${algorithm} Credential=${o.id || id}/${s.scope}, SignedHeaders=${names.join(";")}, Signature=${signature}`;
  return { headers: all, signature, time, ...s, algorithm };
}

// The pieces of an aws-chunked body, signed.
function* chunked(r, pieces, trailers) {
  const pad = (s) => (r.algorithm.includes("ECDSA") ? s.padEnd(144, "*") : s);
  let last = r.signature;
  for (const piece of [...pieces, Buffer.alloc(0)]) {
    last = r.sign([r.algorithm + "-PAYLOAD", r.time, r.scope, last, EMPTY, sha256(piece)].join("\n"));
    yield Buffer.from(piece.length.toString(16) + ";chunk-signature=" + pad(last) + "\r\n");
    yield piece;
    if (piece.length || !trailers) yield Buffer.from("\r\n");
  }
  if (!trailers) return;
  const lines = Object.entries(trailers).map(([k, v]) => `${k}:${v}`);
  last = r.sign([r.algorithm + "-TRAILER", r.time, r.scope, last, sha256(lines.map((l) => l + "\n").sort().join(""))].join("\n"));
  yield Buffer.from([...lines, "x-amz-trailer-signature:" + pad(last), "", ""].join("\r\n"));
}

async function putChunks(algorithm, trailers, withLength, pieces) {
  const data = Buffer.concat(pieces);
  const headers = { "x-amz-decoded-content-length": String(data.length), "content-encoding": "aws-chunked" };
  const sums = trailers && { "x-amz-checksum-sha256": crypto.createHash("sha256").update(data).digest("base64") };
  if (trailers) headers["x-amz-trailer"] = "x-amz-checksum-sha256";
  const url = "https://s3.test/bucket/chunks", width = algorithm.includes("ECDSA") ? 144 : 64;
  if (withLength) {
    let n = sums ? Object.entries(sums).reduce((x, [k, v]) => x + k.length + v.length + 3, 24 + width + 4) : 2;
    for (const p of [...pieces, ""]) n += p.length.toString(16).length + 17 + width + 2 + (p.length ? p.length + 2 : 0);
    headers["Content-Length"] = String(n);
  }
  const r = signed("PUT", url, headers, "STREAMING-" + algorithm + "-PAYLOAD" + (trailers ? "-TRAILER" : ""), { algorithm });
  await request("PUT", url, r.headers, (async function* () { yield* chunked(r, pieces, sums); })());
  const g = signed("GET", url, {}, EMPTY, { algorithm });
  same((await request("GET", url, g.headers)).body, data, algorithm + (trailers ? " with trailers" : ""));
}

async function presigned(crt, service, algorithm, path, more = {}, body) {
  const host = service === "s3" ? "s3.test" : "api.test";
  const config = { algorithm, signature_type: crt.auth.AwsSignatureType.HttpRequestViaQueryParams, region: "eu-central-1", service,
    provider: crt.auth.AwsCredentialsProvider.newStatic(id, secret, token || undefined), date: new Date(), expiration_in_seconds: 600,
    use_double_uri_encode: service !== "s3", should_normalize_uri_path: service !== "s3",
    signed_body_value: service === "s3" ? "UNSIGNED-PAYLOAD" : sha256(body || ""), ...more };
  const r = await crt.auth.aws_sign_request(new crt.http.HttpRequest(body ? "POST" : "PUT", path, new crt.http.HttpHeaders([["host", host]])), config);
  return request(body ? "POST" : "PUT", "https://" + host + r.path, {}, body || "");
}

async function modes(unitText) {
  const unit = Number(unitText);
  const crt = require(npm + "aws-crt");
  const { SigV4, SigV4Asymmetric } = crt.auth.AwsSigningAlgorithm;
  const some = [Buffer.alloc(65536, "a"), Buffer.alloc(1, "b"), crypto.randomBytes(200000)];
  for (const algorithm of ["AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"]) {
    for (const trailers of [false, true])
      for (const withLength of [false, true]) await putChunks(algorithm, trailers, withLength, some);
    await putChunks(algorithm, true, true, [crypto.randomBytes(8 * unit), Buffer.alloc(10)]);
    await putChunks(algorithm, false, false, [crypto.randomBytes(3 * unit)]);
    await putChunks(algorithm, false, true, []);
    const body = '{"x":"' + "y".repeat(3 * unit) + '"}', url = "https://api.test/a%20b/c?Action=X&b=%2B&a=&a";
    for (const b of ["", body]) {
      // The hash is said nowhere: the body has to be known.
      const r = signed("POST", url, { "content-type": "application/json", "x-odd": "  two   blanks " }, sha256(b), { algorithm, service: "service", stated: false });
      same((await request("POST", url, r.headers, b)).body.toString().match(/<Hash>(.*)<\/Hash>/)[1], sha256(b), "hash");
      const c = signed("POST", url, { "content-length": String(b.length) }, sha256(b), { algorithm, service: "service" });
      await request("POST", url, c.headers, b);
    }
    const u = signed("PUT", "https://s3.test/bucket//odd/../%2F./key", {}, "UNSIGNED-PAYLOAD", { algorithm });
    if (u.status) throw new Error("never");
  }
  for (const algorithm of [SigV4, SigV4Asymmetric]) {
    await presigned(crt, "s3", algorithm, "/bucket/a%20b(c)?x=1&x=0&y");
    await presigned(crt, "service", algorithm, "/a%20b/c?x=%2B&e=");
    await presigned(crt, "service", algorithm, "/a", {}, "a body");
    if (token) await presigned(crt, "service", algorithm, "/a", { omit_session_token: true });
  }
  // Date in place of x-amz-date; a second value of a header; expect.
  const now = new Date();
  const d = signed("GET", "https://api.test/", { date: now.toUTCString(), "x-two": ["b", "a"] }, EMPTY,
    { service: "service", stated: false, httpDate: true, time: iso(now) });
  await request("GET", "https://api.test/", d.headers);
  const e = signed("PUT", "https://s3.test/bucket/expect", { expect: "100-continue" }, "UNSIGNED-PAYLOAD");
  await request("PUT", "https://s3.test/bucket/expect", e.headers, "body");
  // A clock that is wrong is said in the log.
  const late = signed("GET", "https://api.test/late", {}, EMPTY, { service: "service", time: iso(new Date(Date.now() - 600e3)) });
  await request("GET", "https://api.test/late", late.headers);
  console.log("modes done");
}

// --- many requests ---

// Those of the batch that can be sent: now, with the body that was signed, by a client that signs as AWS has it, and
// without dot segments, which the gateway refuses.
async function send(crt, r) {
  const s3 = r.config.service.startsWith("s3"), host = s3 && r.method !== "POST" ? "s3.test" : "api.test";
  const streaming = r.config.signed_body_value.startsWith("STREAMING-"), hasBody = r.method === "PUT" || r.method === "POST";
  if (streaming || (!hasBody && r.body && r.config.signed_body_value !== "UNSIGNED-PAYLOAD")) r.config.signed_body_value = streaming ? "UNSIGNED-PAYLOAD" : EMPTY;
  r.headers[0][1] = host;
  r.target = r.target.replace(/\/\.\.?(?=[/?]|$)/g, "/dots");
  const provider = crt.auth.AwsCredentialsProvider.newStatic(id, secret, token || undefined);
  const config = { ...r.config, provider, date: new Date(), use_double_uri_encode: !s3, should_normalize_uri_path: !s3 };
  const signed = await crt.auth.aws_sign_request(new crt.http.HttpRequest(r.method, r.target, new crt.http.HttpHeaders(r.headers)), config);
  const body = hasBody ? r.body : "";
  const headers = [...signed.headers, ...(hasBody ? [["content-length", String(body.length)]] : [])];
  const a = await request(r.method, "https://" + host + signed.path, headers.flat(), body, 0);
  if (a.status >= 300 && a.status !== 404) throw new Error(`${a.status} ${a.body} ${JSON.stringify({ r, signed: [...signed.headers], path: signed.path })}`);
}

async function many(count, seed) {
  const crt = require(npm + "aws-crt"), { make } = require("/lib-of-tests/aws_requests.js")(crt, seed);
  let left = Number(count);
  await Promise.all(Array.from({ length: 8 }, async () => {
    while (left-- > 0) await send(crt, make());
  }));
  console.log("many done");
}

// --- what is refused ---

async function refused() {
  const get = async (name, url, headers, want, says) => {
    const a = await request("GET", url, headers, "", 0);
    if (a.status !== want || !a.body.toString().includes(says)) throw new Error(`${name}: ${a.status} ${a.body.toString().slice(0, 300)}`);
  };
  const url = "https://s3.test/bucket/k", ok = () => signed("GET", url, {}, EMPTY).headers;
  const changed = (f) => { const h = ok(); f(h); return h; };
  await get("replayed for another path", url + "x", ok(), 403, "does not verify");
  await get("replayed with a query", url + "?acl", ok(), 403, "does not verify");
  await get("another header", url, changed((h) => { h["x-amz-date"] = h["x-amz-date"].replace(/.Z$/, "0Z").replace(/(\d)(.)Z$/, "9$2Z"); }), 403, "aws_signature_refused");
  await get("another hash", url, changed((h) => { h["x-amz-content-sha256"] = sha256("x"); }), 403, "does not verify");
  await get("another token", url, changed((h) => { h["x-amz-security-token"] = "x".repeat(40); }), 403, "session token");
  await get("unknown streaming", url, signed("GET", url, {}, "STREAMING-AWS4-HMAC-SHA256-EVENTS").headers, 403, "unknown");
  await get("malformed", url, { Authorization: "AWS4-HMAC-SHA256 Credential=x" }, 403, "malformed");
  await get("unknown algorithm", url, { Authorization: "AWS4-HMAC-SHA512 Credential=x" }, 403, "not signed");
  await get("without host", url, changed((h) => { h.Authorization = h.Authorization.replace("SignedHeaders=host;", "SignedHeaders="); }), 403, "without host");
  await get("foreign presigned", url + "?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAFOREIGN%2F20260101%2Feu%2Fs3%2Faws4_request&X-Amz-Date=20260101T000000Z&X-Amz-SignedHeaders=host&X-Amz-Expires=60&X-Amz-Signature=" + EMPTY, {}, 403, "not signed with credentials of this sandbox");
  await get("foreign presigned of old", url + "?AWSAccessKeyId=AKIAFOREIGN&Signature=x&Expires=1", {}, 403, "aws_signature_refused");
  await get("disguised", url + "?X%2DAmz%2Dcredential=AKIAFOREIGN", {}, 403, "aws_signature_refused");
  // Foreign ones in headers are taken out: the origin sees a request without a signature.
  await get("foreign", url, signed("GET", url, {}, EMPTY, { id: "AKIAFOREIGN" }).headers, 403, "not signed");
  await get("foreign of old", url, { Authorization: "AWS AKIAFOREIGN:x" }, 403, "not signed");
  await get("bearer", url, { Authorization: "Bearer x" }, 403, "not signed");
  // Nothing of ours for a host that is not in scope.
  const other = await request("GET", "https://other.test/", ok(), "", 0);
  if (other.status !== 403 || !other.body.toString().includes("access key is another: " + id)) throw new Error("other: " + other.body);
  // A chunk that is not what was signed: nothing of it arrives.
  const r = signed("PUT", url, { "x-amz-decoded-content-length": "3", "content-length": String(2 * 87 + 5 - 2) }, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD");
  const bytes = Buffer.concat([...chunked(r, [Buffer.from("abc")])]);
  r.headers["content-length"] = String(bytes.length);
  const r2 = signed("PUT", url, { "x-amz-decoded-content-length": "3", "content-length": String(bytes.length) }, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD");
  const good = Buffer.concat([...chunked(r2, [Buffer.from("abc")])]), bad = Buffer.from(good);
  bad[bad.indexOf("abc")] ^= 1;
  const a = await request("PUT", url, r2.headers, bad, 0);
  if (a.status !== 502 || !a.body.toString().includes("not that of its chunk")) throw new Error("chunk: " + a.status + a.body);
  console.log("refused done");
}

({ sdk, modes, refused, many })[process.argv[2]](...process.argv.slice(3)).catch((e) => {
  console.error(e);
  process.exit(1);
});
