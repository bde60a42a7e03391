// SPDX-License-Identifier: Apache-2.0
// require("aws_requests.js")(crt, SEED).make() is the next of many requests, odd ones too, and how aws-crt is to sign it.
"use strict";
const crypto = require("crypto");
const sha256 = (text) => crypto.createHash("sha256").update(text).digest("hex");
const EMPTY = sha256("");

module.exports = (crt, seed) => {
  const { AwsSignatureType, AwsSigningAlgorithm, AwsSignedBodyHeaderType } = crt.auth;
  let state = Number(seed);
  function below(n) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor(state / 4294967296 * n);
  }
  const pick = (list) => list[below(list.length)];
  const some = (n, f) => Array.from({ length: below(n + 1) }, f);

  const SEGMENTS = ["a", "b.c", "~x-_", "%20", "%2F", "%2f", ".", "..", "", "a+b", "(x)", "x=y", "@:,;", "%C3%BC", "%25", "!*'", "$&", "long".repeat(40)];
  const NAMES = ["a", "A", "b", "a-b", "a%20b", "list-type", "x.y", "%E1%88%B4", "~"];
  const VALUES = ["", "1", "2", "a%20b", "%2B", "a%2Fb", "x,y", "a:b", "%7E~", "a/b", "=", "(1)"];
  const HEADERS = { "content-type": ["application/json", "text/plain; charset=utf-8"], "my-header": ["a   b", "  x  ", "\"q  q\"", "1,2"],
    range: ["bytes=0-9"], "x-amz-meta-a": ["v", "two  words"], "x-amz-acl": ["private"] };

  function make() {
    const query = some(5, () => pick(NAMES) + pick(["", "=" + pick(VALUES), "=" + pick(VALUES)])).join("&");
    const headers = [["host", pick(["s3.test", "bucket.s3.test:8443"])]];
    for (const name of Object.keys(HEADERS))
      if (below(3) === 0) for (let i = 0; i <= below(2); i++) headers.push([name, pick(HEADERS[name])]);
    const service = pick(["s3", "s3", "service", "dynamodb", "s3-outposts", "s3express", "execute-api"]);
    const s3 = service.startsWith("s3");
    const place = below(2) ? AwsSignatureType.HttpRequestViaHeaders : AwsSignatureType.HttpRequestViaQueryParams;
    const odd = below(5) === 0; // a client that has it the other way
    const body = String(below(3)), hash = sha256(body);
    const inQuery = place === AwsSignatureType.HttpRequestViaQueryParams;
    const payload = inQuery ? (s3 ? "UNSIGNED-PAYLOAD" : pick([EMPTY, hash])) : pick([hash, EMPTY, "UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"]);
    return { method: pick(["GET", "PUT", "POST", "DELETE", "HEAD"]), headers, hash: payload.length === 64 ? payload : hash, body: payload === EMPTY ? "" : body,
      target: "/" + some(5, () => pick(SEGMENTS)).join("/") + (query || below(9) === 0 ? "?" + query : ""),
      config: { algorithm: below(10) ? AwsSigningAlgorithm.SigV4 : AwsSigningAlgorithm.SigV4Asymmetric, signature_type: place,
        region: pick(["us-east-1", "eu-central-1"]), service, date: new Date(Date.UTC(2026, below(12), 1 + below(28), below(24))),
        use_double_uri_encode: !s3 !== odd, should_normalize_uri_path: !s3 !== (odd && below(2) === 0),
        omit_session_token: below(4) === 0, signed_body_value: payload, expiration_in_seconds: 900,
        signed_body_header: AwsSignedBodyHeaderType[!inQuery && (payload.length !== 64 || below(2)) ? "XAmzContentSha256" : "None"] } };
  }
  return { make };
};
