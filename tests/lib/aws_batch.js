// SPDX-License-Identifier: Apache-2.0
// node aws_batch.js FOLDER PROGRAM COUNT SEED: makes requests, odd ones too, has aws-crt sign them with
// surrogates and PROGRAM (aws-resign) sign them again, and compares with what aws-crt makes with the real
// credentials; SigV4A, which is never the same twice, is verified by aws-crt.
"use strict";
const child = require("child_process");
const crypto = require("crypto");
const path = require("path");
const [folder, program, count, seed] = process.argv.slice(2);
const crt = require(path.join(folder, "node_modules", "aws-crt"));
const { AwsSignatureType, AwsSigningAlgorithm } = crt.auth;
const hmac = (key, text) => crypto.createHmac("sha256", key).update(text).digest();
const ROOM = { id: "ASIAROOMROOMROOM", secret: "room/secret+room", token: "room/token+room//==" };
const REAL = { id: "ASIAREALREALREAL", secret: "real/secret+real", token: "real//token/++/real==" };

const { make } = require(path.join(__dirname, "aws_requests.js"))(crt, seed);

async function sign(r, by) {
  const provider = crt.auth.AwsCredentialsProvider.newStatic(by.id, by.secret, by.token);
  const request = new crt.http.HttpRequest(r.method, r.target, new crt.http.HttpHeaders(r.headers));
  const signed = await crt.auth.aws_sign_request(request, { ...r.config, provider });
  return { target: signed.path, headers: [...signed.headers] };
}

function publicKey() {
  const text = Buffer.concat([Buffer.from([0, 0, 0, 1]), Buffer.from("AWS4-ECDSA-P256-SHA256\0" + REAL.id), Buffer.from([1, 0, 0, 1, 0])]);
  const d = BigInt("0x" + hmac("AWS4A" + REAL.secret, text).toString("hex")) + 1n;
  const ecdh = crypto.createECDH("prime256v1");
  ecdh.setPrivateKey(Buffer.from(d.toString(16).padStart(64, "0"), "hex"));
  const p = ecdh.getPublicKey();
  return [p.subarray(1, 33).toString("hex"), p.subarray(33).toString("hex")];
}

// Written from the rules; that it is right is checked by aws-crt.
const encode = (s) => encodeURIComponent(s).replace(/[!'()*]/g, (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase());
function canonical(r, target, headers, names) {
  let [p, q = ""] = target.split(/\?(.*)/s);
  if (r.config.should_normalize_uri_path) {
    const kept = [];
    for (const s of p.split("/")) {
      if (s === "..") kept.pop();
      else if (s && s !== ".") kept.push(s);
    }
    p = "/" + kept.join("/") + (p.endsWith("/") && kept.length ? "/" : "");
  }
  if (r.config.use_double_uri_encode) p = encode(p).replace(/%2F/g, "/");
  const skip = ["X-Amz-Signature", ...(r.config.omit_session_token ? ["X-Amz-Security-Token"] : [])];
  const params = q.split("&").filter((x) => x).map((x) => (x + (x.includes("=") ? "" : "=")).split(/=(.*)/s).slice(0, 2)
    .map((y) => encode(decodeURIComponent(y)))).filter((x) => !skip.includes(x[0]));
  params.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] < b[1] ? -1 : a[1] > b[1] ? 1 : 0));
  const lines = names.map((n) => n + ":" + headers.filter((h) => h[0].toLowerCase() === n).map((h) => h[1].trim().replace(/\s+/g, " ")).join(","));
  return [r.method, p, params.map((x) => x.join("=")).join("&"), ...lines, "", names.join(";"), r.config.signed_body_value].join("\n");
}

function verifyEcdsa(r, target, headers, key) {
  const query = new URLSearchParams(target.split("?")[1] || "");
  const authorization = (headers.find((h) => h[0] === "Authorization") || [0, ""])[1];
  const names = (query.get("X-Amz-SignedHeaders") || authorization.match(/SignedHeaders=([^,]*)/)[1]).split(";");
  const signature = query.get("X-Amz-Signature") || authorization.match(/Signature=(.*)/)[1];
  const provider = crt.auth.AwsCredentialsProvider.newStatic(REAL.id, REAL.secret, REAL.token);
  return crt.auth.aws_verify_sigv4a_signing(new crt.http.HttpRequest(r.method, r.target, new crt.http.HttpHeaders(r.headers)),
    { ...r.config, provider }, canonical(r, target, headers, names), signature, ...key);
}

async function main() {
  const made = [];
  for (let i = 0; i < Number(count); i++) {
    const r = make();
    made.push(r);
    r.room = await sign(r, ROOM);
  }
  const text = made.map((r) => [`${r.method} ${r.room.target}`, r.hash, ...r.room.headers.map((h) => h.join(":")), "", ""].join("\n")).join("");
  const p = child.spawnSync(program, { input: text, maxBuffer: 1 << 30, env: { REAL_ID: REAL.id, REAL_SECRET: REAL.secret,
    REAL_TOKEN: REAL.token, ROOM_ID: ROOM.id, ROOM_SECRET: ROOM.secret, ROOM_TOKEN: ROOM.token } });
  const answers = p.stdout.toString().split("\n"), key = publicKey(), counts = {};
  let bad = 0;
  for (const [i, r] of made.entries()) {
    const inQuery = r.config.signature_type === AwsSignatureType.HttpRequestViaQueryParams;
    const got = (answers[i] || "").slice(3), ok = (answers[i] || "").startsWith("ok ");
    const kind = (r.config.algorithm ? "SigV4A" : "SigV4") + (inQuery ? " query" : " header");
    let good = false;
    if (ok && r.config.algorithm === AwsSigningAlgorithm.SigV4) {
      const want = await sign(r, REAL);
      good = got === (inQuery ? want.target : want.headers.find((h) => h[0] === "Authorization")[1]);
    } else if (ok) {
      const headers = r.room.headers.map(([n, v]) => [n, n === "Authorization" ? got : n === "X-Amz-Security-Token" ? REAL.token : v]);
      try {
        good = verifyEcdsa(r, inQuery ? got : r.target, headers, key);
      } catch (e) {
        answers[i] += " " + e.message;
      }
    }
    counts[kind] = (counts[kind] || 0) + good;
    if (!good && bad++ < 5) console.log("# " + JSON.stringify({ ...r, answer: answers[i] }));
  }
  console.log(JSON.stringify({ counts, bad }));
}

main();
