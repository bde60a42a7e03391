// SPDX-License-Identifier: Apache-2.0
// An origin that looks like S3 and like a service that is not, and believes nothing: every signature
// is made anew with the real credentials by the signer of AWS's own SDKs (aws-crt), those of chunks
// and of SigV4A are checked with node's crypto, and whatever differs is answered 403.
//
// node aws_origin.js FOLDER CERT KEY: FOLDER has node_modules; AWS_* are the real credentials. Prints
// its port, then one JSON line a request.
"use strict";
const crypto = require("crypto");
const fs = require("fs");
const https = require("https");
const path = require("path");
const [folder, certFile, keyFile] = process.argv.slice(2);
const crt = require(path.join(folder, "node_modules", "aws-crt"));
const real = {
  id: process.env.AWS_ACCESS_KEY_ID,
  secret: process.env.AWS_SECRET_ACCESS_KEY,
  token: process.env.AWS_SESSION_TOKEN || "",
};
const EMPTY = crypto.createHash("sha256").digest("hex");
const S3 = ["s3", "s3-outposts", "s3-object-lambda", "s3express"];
const objects = new Map();
const uploads = new Map();

const sha256 = (b) => crypto.createHash("sha256").update(b).digest("hex");
const hmac = (key, text) => crypto.createHmac("sha256", key).update(text).digest();

function provider() {
  return crt.auth.AwsCredentialsProvider.newStatic(real.id, real.secret, real.token || undefined);
}

function signingKey(date, region, service) {
  return ["aws4_request"].reduce(hmac, hmac(hmac(hmac("AWS4" + real.secret, date), region), service));
}

// SigV4A: the public key that belongs to the credentials.
let publicKey;
function ecdsaKey() {
  if (publicKey) return publicKey;
  const order = BigInt("0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551");
  for (let counter = 1; ; counter++) {
    const text = Buffer.concat([Buffer.from([0, 0, 0, 1]), Buffer.from("AWS4-ECDSA-P256-SHA256\0" + real.id),
      Buffer.from([counter, 0, 0, 1, 0])]);
    const c = BigInt("0x" + hmac("AWS4A" + real.secret, text).toString("hex"));
    if (c > order - 2n) continue;
    const ecdh = crypto.createECDH("prime256v1");
    ecdh.setPrivateKey(Buffer.from((c + 1n).toString(16).padStart(64, "0"), "hex"));
    const point = ecdh.getPublicKey();
    publicKey = {
      x: point.subarray(1, 33).toString("hex"), y: point.subarray(33).toString("hex"),
      key: crypto.createPublicKey({ format: "jwk", key: { kty: "EC", crv: "P-256",
        x: point.subarray(1, 33).toString("base64url"), y: point.subarray(33).toString("base64url") } }),
    };
    return publicKey;
  }
}

function headerList(req, name) {
  const found = [];
  for (let i = 0; i < req.rawHeaders.length; i += 2)
    if (req.rawHeaders[i].toLowerCase() === name) found.push(req.rawHeaders[i + 1]);
  return found;
}

// What the request says about its signature; null: nothing.
function findAuth(req) {
  const authorization = headerList(req, "authorization");
  if (authorization.length > 1) throw new Error("two Authorization");
  if (authorization.length) {
    const m = /^(AWS4-\S+) Credential=([^,\/]+)\/([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]+)$/
      .exec(authorization[0]);
    if (!m) throw new Error("not understood: " + authorization[0].split(" ")[0]);
    return { place: "header", algorithm: m[1], id: m[2], scope: m[3], headers: m[4].split(";"),
      signature: m[5], date: headerList(req, "x-amz-date")[0] || isoDate(headerList(req, "date")[0]),
      token: headerList(req, "x-amz-security-token")[0] || "" };
  }
  const query = new URLSearchParams(req.url.split("?")[1] || "");
  if (!query.has("X-Amz-Signature")) return null;
  const credential = query.get("X-Amz-Credential");
  return { place: "query", algorithm: query.get("X-Amz-Algorithm"), id: credential.split("/")[0],
    scope: credential.slice(credential.indexOf("/") + 1), headers: query.get("X-Amz-SignedHeaders").split(";"),
    signature: query.get("X-Amz-Signature"), date: query.get("X-Amz-Date"),
    token: query.get("X-Amz-Security-Token") || headerList(req, "x-amz-security-token")[0] || "",
    expires: Number(query.get("X-Amz-Expires")) };
}

function isoDate(text) {
  return new Date(text).toISOString().replace(/[-:]|\.\d+/g, "");
}

function parseDate(s) {
  return new Date(s.replace(/^(....)(..)(..)T(..)(..)(..)Z$/, "$1-$2-$3T$4:$5:$6Z"));
}

const encode = (s) => encodeURIComponent(s).replace(/[!'()*]/g, (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase());

// Written from the rules, for what cannot be compared as text (SigV4A).
function canonicalRequest(req, auth, payload, withoutToken) {
  const s3 = S3.includes(auth.service);
  let [p, q = ""] = req.url.split(/\?(.*)/s);
  if (!s3) {
    const kept = [];
    for (const s of p.split("/")) {
      if (s === "..") kept.pop();
      else if (s && s !== ".") kept.push(s);
    }
    p = "/" + kept.join("/") + (p.endsWith("/") && kept.length ? "/" : "");
    p = encode(p).replace(/%2F/g, "/");
  }
  const params = q.split("&").filter((x) => x).map((x) => {
    const at = x.indexOf("=");
    const pair = at < 0 ? [x, ""] : [x.slice(0, at), x.slice(at + 1)];
    return pair.map((y) => encode(decodeURIComponent(y)));
  }).filter((x) => auth.place === "header" || (x[0] !== "X-Amz-Signature" && !(withoutToken && x[0] === "X-Amz-Security-Token")));
  params.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] < b[1] ? -1 : a[1] > b[1] ? 1 : 0));
  const lines = auth.headers.map((n) => n + ":" + headerList(req, n).map((v) => v.trim().replace(/\s+/g, " ")).join(","));
  return [req.method, p, params.map((x) => x.join("=")).join("&"), ...lines, "", auth.headers.join(";"), payload].join("\n");
}

function verifyEcdsa(auth, text, signature) {
  return crypto.createVerify("SHA256").update(text).verify(ecdsaKey().key, Buffer.from(signature, "hex"));
}

function config(auth, payload) {
  const s3 = S3.includes(auth.service);
  return { algorithm: crt.auth.AwsSigningAlgorithm.SigV4, provider: provider(), region: auth.region,
    signature_type: auth.place === "header" ? crt.auth.AwsSignatureType.HttpRequestViaHeaders
      : crt.auth.AwsSignatureType.HttpRequestViaQueryParams,
    service: auth.service, date: parseDate(auth.date), use_double_uri_encode: !s3,
    should_normalize_uri_path: !s3, signed_body_value: payload, expiration_in_seconds: auth.expires,
    signed_body_header: crt.auth.AwsSignedBodyHeaderType[
      auth.place === "header" && auth.headers.includes("x-amz-content-sha256") ? "XAmzContentSha256" : "None"] };
}

// Parameters and headers that the signer adds by itself.
const OWN = ["X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-SignedHeaders", "X-Amz-Signature",
  "X-Amz-Expires", "X-Amz-Security-Token"];

async function verifyHmac(req, auth, payload, withoutToken) {
  const headers = new crt.http.HttpHeaders();
  for (const name of auth.headers) {
    if (["x-amz-date", "x-amz-security-token", "x-amz-content-sha256"].includes(name)) continue;
    for (const value of headerList(req, name)) headers.add(name, value);
  }
  let url = req.url;
  if (auth.place === "query") {
    const [p, q] = req.url.split(/\?(.*)/s);
    const rest = q.split("&").filter((x) => !OWN.includes(decodeURIComponent(x.split("=")[0])));
    url = p + (rest.length ? "?" + rest.join("&") : "");
  }
  const c = config(auth, payload);
  c.omit_session_token = auth.place === "header" ? !auth.headers.includes("x-amz-security-token") : withoutToken;
  // What it would leave out, or add, by its own rules is not for it to say.
  const hidden = ["user-agent", "x-amzn-trace-id", "expect", "connection"].filter((n) => auth.headers.includes(n));
  if (hidden.length) throw new Error("not to be signed: " + hidden);
  const signed = await crt.auth.aws_sign_request(new crt.http.HttpRequest(req.method, url, headers), c);
  const text = auth.place === "header" ? signed.headers.get("Authorization").split("Signature=")[1]
    : new URLSearchParams(signed.path.split("?")[1]).get("X-Amz-Signature");
  return text === auth.signature;
}

async function verifyRequest(req, auth, payload) {
  const ecdsa = auth.algorithm === "AWS4-ECDSA-P256-SHA256";
  const parts = auth.scope.split("/");
  if (auth.id !== real.id) throw new Error("the access key is another: " + auth.id);
  if (auth.token !== real.token) throw new Error("the session token is another");
  if (!auth.headers.includes("host")) throw new Error("host is not signed");
  [auth.dateOnly, auth.region, auth.service] = ecdsa ? [parts[0], "", parts[1]] : parts;
  if (parts.pop() !== "aws4_request" || !auth.date.startsWith(auth.dateOnly)) throw new Error("scope");
  if (Math.abs(Date.now() - parseDate(auth.date)) > 900e3) throw new Error("RequestTimeTooSkewed");
  // Some add the token to a presigned URL when it is signed already (AWS IoT).
  for (const withoutToken of auth.place === "query" ? [false, true] : [false]) {
    const text = () => [auth.algorithm, auth.date, auth.scope, sha256(canonicalRequest(req, auth, payload, withoutToken))].join("\n");
    // aws-crt always signs x-amz-date.
    const byHand = auth.place === "header" && !auth.headers.includes("x-amz-date");
    if (ecdsa ? verifyEcdsa(auth, text(), auth.signature)
      : byHand ? hmac(signingKey(auth.dateOnly, auth.region, auth.service), text()).toString("hex") === auth.signature
        : await verifyHmac(req, auth, payload, withoutToken)) return;
  }
  throw new Error("the signature is another");
}

// Takes an aws-chunked body apart. Every chunk is checked.
function chunks(body, auth, payload) {
  const signed = payload.includes("AWS4"), trailer = payload.endsWith("-TRAILER");
  const ecdsa = payload.includes("ECDSA"), found = [], sizes = [];
  let at = 0, last = auth.signature, size;
  const line = () => {
    const end = body.indexOf("\r\n", at);
    if (end < 0) throw new Error("no line");
    const text = body.toString("latin1", at, end);
    at = end + 2;
    return text;
  };
  const check = (signature, text) => {
    if (ecdsa && signature.length !== 144) throw new Error("a signature is not padded");
    const plain = signature.replace(/\*+$/, "");
    const ok = ecdsa ? verifyEcdsa(auth, text, plain)
      : hmac(signingKey(auth.dateOnly, auth.region, auth.service), text).toString("hex") === plain;
    if (!ok) throw new Error("a chunk's signature is another");
    last = plain;
  };
  do {
    const m = /^([0-9a-f]+)(?:;chunk-signature=([0-9a-f]+\**))?$/.exec(line());
    if (!m || (signed && !m[2])) throw new Error("a chunk's header");
    size = parseInt(m[1], 16);
    const data = body.subarray(at, at + size);
    at += size;
    if (signed)
      check(m[2], [auth.algorithm + "-PAYLOAD", auth.date, auth.scope, last, EMPTY, sha256(data)].join("\n"));
    if ((size || !trailer) && line() !== "") throw new Error("a chunk's end");
    found.push(data);
    sizes.push(size);
  } while (size);
  const trailers = [];
  for (let text; trailer && (text = line()) !== "";) {
    const [name, value] = text.split(/:(.*)/s);
    if (name === "x-amz-trailer-signature") {
      const canonical = trailers.map((t) => t.join(":") + "\n").sort().join("");
      check(value, [auth.algorithm + "-TRAILER", auth.date, auth.scope, last, sha256(canonical)].join("\n"));
      trailers.signed = true;
    } else trailers.push([name, value.trim()]);
  }
  if (trailer && signed && !trailers.signed) throw new Error("the trailers are not signed");
  if (at !== body.length) throw new Error("bytes behind the body");
  return { data: Buffer.concat(found), trailers };
}

function crc32c(data) {
  return Buffer.from(Uint32Array.of(crt.checksums.crc32c(data)).buffer).reverse().toString("base64");
}

function checkSums(req, data, trailers) {
  const said = Object.fromEntries([...Object.entries(req.headers).filter(([k]) => k.startsWith("x-amz-checksum-")), ...trailers]);
  const is = {
    "x-amz-checksum-sha256": () => crypto.createHash("sha256").update(data).digest("base64"),
    "x-amz-checksum-sha1": () => crypto.createHash("sha1").update(data).digest("base64"),
    "x-amz-checksum-crc32c": () => crc32c(data),
    "x-amz-checksum-crc32": () => Buffer.from(Uint32Array.of(crt.checksums.crc32(data)).buffer).reverse().toString("base64"),
  };
  for (const [name, f] of Object.entries(is))
    if (said[name] && data.length && said[name] !== f()) throw new Error(name + " is another");
  return Object.keys(said).filter((k) => is[k]);
}

async function take(req, body, seen) {
  const auth = findAuth(req);
  if (!auth) throw new Error("not signed");
  const stated = headerList(req, "x-amz-content-sha256")[0];
  const service = auth.scope.split("/").slice(-2)[0];
  let payload = stated;
  if (!payload && auth.place === "query")
    payload = new URLSearchParams(req.url.split("?")[1]).get("X-Amz-Content-Sha256") ||
      (S3.includes(service) ? "UNSIGNED-PAYLOAD" : sha256(body));
  if (!payload) payload = sha256(body);
  seen.payload = stated ? (/^[0-9a-f]{64}$/.test(stated) ? "hash" : stated) : auth.place === "query" ? "presigned" : "unsaid";
  seen.algorithm = auth.algorithm;
  await verifyRequest(req, auth, payload);
  if (/^[0-9a-f]{64}$/.test(payload) && payload !== sha256(body)) throw new Error("the body's hash is another");
  const chunked = payload.startsWith("STREAMING-");
  const content = chunked ? chunks(body, auth, payload) : { data: body, trailers: [] };
  if (chunked && Number(req.headers["x-amz-decoded-content-length"]) !== content.data.length)
    throw new Error("x-amz-decoded-content-length");
  if (req.headers["content-md5"] && crypto.createHash("md5").update(content.data).digest("base64") !== req.headers["content-md5"])
    throw new Error("Content-MD5");
  seen.checksums = checkSums(req, content.data, content.trailers);
  return content.data;
}

// --- what S3 does ---

function xml(res, text) {
  res.writeHead(200, { "Content-Type": "application/xml" });
  res.end('<?xml version="1.0" encoding="UTF-8"?>\n' + text);
}

function etag(data) {
  return '"' + crypto.createHash("md5").update(data).digest("hex") + '"';
}

function post(name, query, data, res) {
  if (query.has("uploads")) {
    const id = "upload" + uploads.size;
    uploads.set(id, new Map());
    return xml(res, `<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`);
  }
  const parts = uploads.get(query.get("uploadId"));
  const whole = Buffer.concat([...parts.keys()].sort((a, b) => a - b).map((n) => parts.get(n)));
  objects.set(name, whole);
  uploads.delete(query.get("uploadId"));
  return xml(res, `<CompleteMultipartUploadResult><Location>l</Location><Bucket>b</Bucket><Key>k</Key><ETag>${etag(whole)}</ETag></CompleteMultipartUploadResult>`);
}

function answer(req, data, res) {
  const name = decodeURIComponent(req.url.split("?")[0]);
  const query = new URLSearchParams(req.url.split("?")[1] || "");
  if (req.headers.host.startsWith("api.")) return xml(res, `<Hash>${sha256(data)}</Hash>`);
  if (req.method === "POST") return post(name, query, data, res);
  if (req.method === "PUT") {
    if (query.has("partNumber")) uploads.get(query.get("uploadId")).set(Number(query.get("partNumber")), data);
    else objects.set(name, data);
    res.writeHead(200, { ETag: etag(data), "Content-Length": 0 });
    return res.end();
  }
  const object = objects.get(name);
  if (!object) {
    res.writeHead(404, { "Content-Type": "application/xml" });
    return res.end("<Error><Code>NoSuchKey</Code></Error>");
  }
  const range = /^bytes=(\d+)-(\d*)$/.exec(req.headers.range || "");
  const from = range ? Number(range[1]) : 0, to = range && range[2] ? Math.min(Number(range[2]) + 1, object.length) : object.length;
  const head = { "Content-Length": to - from, ETag: etag(object), "Last-Modified": new Date().toUTCString(), "Accept-Ranges": "bytes" };
  if (range) head["Content-Range"] = `bytes ${from}-${to - 1}/${object.length}`;
  res.writeHead(range ? 206 : 200, head);
  return res.end(req.method === "HEAD" ? undefined : object.subarray(from, to));
}

function handle(req, res) {
  const pieces = [];
  req.on("data", (d) => pieces.push(d));
  req.on("end", async () => {
    const body = Buffer.concat(pieces), seen = { method: req.method, url: req.url.split("?")[0], bytes: body.length };
    try {
      const data = await take(req, body, seen);
      seen.ok = true;
      answer(req, data, res);
    } catch (e) {
      seen.ok = false;
      seen.why = e.message;
      res.writeHead(403, { "Content-Type": "application/xml" });
      res.end(`<Error><Code>SignatureDoesNotMatch</Code><Message>${e.message}</Message><AWSAccessKeyId>${real.id}</AWSAccessKeyId></Error>`);
    }
    console.log(JSON.stringify(seen));
  });
}

const server = https.createServer({ cert: fs.readFileSync(certFile), key: fs.readFileSync(keyFile) }, handle);
server.on("checkContinue", (req, res) => { res.writeContinue(); handle(req, res); });
// A POST is lost if it meets the end of an idle connection, on a machine that is busy for a second.
server.keepAliveTimeout = 120000;
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.on("end", () => process.exit(0)).resume();
