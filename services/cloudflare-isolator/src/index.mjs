// SPDX-License-Identifier: Apache-2.0
// The isolator service as a Worker: it asks for a bearer secret, and hands what is to be run to a container, one for
// each session, in which cloche-far(1) serves. It has three parts:
//   the Worker    checks who asks, and what for; has nothing of a session
//   Isolator      a Durable Object for each session: starts its container, and ends it when it has slept long enough
//   Registry      one Durable Object that knows which sessions have containers, so that there are at most so many
import { DurableObject } from "cloudflare:workers";

const PORT = 8080; // where cloche-far listens in the container
const BODY_MAX = 1024 * 1024; // as cloche-far has it
const START_MS = 30_000;
const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** What is answered with another status than 200. */
class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

function refuse(status, message) {
  return Response.json({ success: false, error: message }, { status });
}

/** Milliseconds of "500ms", "30s", "5m", "1h". */
function sleep(env) {
  const text = env.SLEEP_AFTER ?? "5m";
  const found = /^(\d+)(ms|s|m|h)$/.exec(text);
  if (!found || Number(found[1]) === 0) throw new Refusal(500, `SLEEP_AFTER is no time such as 5m: "${text}"`);
  return Number(found[1]) * UNITS[found[2]];
}

function instances(env) {
  const n = Number(env.MAX_INSTANCES ?? 10);
  if (!Number.isInteger(n) || n < 1) throw new Refusal(500, `MAX_INSTANCES is no number above 0: "${env.MAX_INSTANCES}"`);
  return n;
}

/** Whether two texts are the same, in a time that tells nothing about either. */
async function same(a, b) {
  const encoder = new TextEncoder();
  const digests = await Promise.all([a, b].map((s) => crypto.subtle.digest("SHA-256", encoder.encode(s))));
  return crypto.subtle.timingSafeEqual(...digests);
}

async function authorize(request, env) {
  if (typeof env.ISOLATOR_TOKEN !== "string" || env.ISOLATOR_TOKEN.length < 16)
    throw new Refusal(500, "the service has no secret of at least 16 characters: wrangler secret put ISOLATOR_TOKEN");
  const found = /^Bearer +([\x21-\x7e]+)$/i.exec(request.headers.get("Authorization") ?? "");
  if (!found || !(await same(found[1], env.ISOLATOR_TOKEN))) throw new Refusal(401, "Unauthorized");
}

/** The session of ?session=NAME; "default" if there is none. */
function sessionOf(url) {
  const names = url.searchParams.getAll("session");
  if (names.length === 0) return "default";
  if (names.length > 1 || !/^[A-Za-z0-9_.~-]{1,64}$/.test(names[0]))
    throw new Refusal(500, "session has to be one name of at most 64 letters, digits and -_.~");
  return names[0];
}

async function bodyOf(request) {
  const pieces = [];
  let size = 0;
  for await (const piece of request.body ?? []) {
    size += piece.byteLength;
    if (size > BODY_MAX) throw new Refusal(413, "the body has more than 1 MiB");
    pieces.push(piece);
  }
  return new Blob(pieces).arrayBuffer();
}

/** A far room of cloche, in a container of its own: it is made, joined by a WebSocket, and removed. */
async function far(request, env, url) {
  const joins = (request.headers.get("Upgrade") ?? "").toLowerCase() === "websocket";
  if (request.method === "GET" && !joins) return Response.json({ success: true });
  if (!["GET", "POST", "DELETE"].includes(request.method)) return new Response("Not Found", { status: 404 });
  if (!url.searchParams.has("session")) throw new Refusal(400, "session has to be the id of a far room");
  const name = sessionOf(url);
  const headers = { "Cloche-Version": request.headers.get("Cloche-Version") ?? "" };
  if (request.method === "GET") headers.Upgrade = "websocket";
  const isolator = env.ISOLATOR.get(env.ISOLATOR.idFromName(name));
  return isolator.fetch("http://isolator/far/" + name, { method: request.method, headers });
}

async function route(request, env) {
  const url = new URL(request.url);
  if (request.method === "GET" && url.pathname === "/health") return Response.json({ status: "ok" });
  await authorize(request, env);
  if (url.pathname === "/far") return far(request, env, url);
  if (request.method !== "POST" || url.pathname !== "/execute") return new Response("Not Found", { status: 404 });
  const name = sessionOf(url);
  const body = await bodyOf(request);
  const isolator = env.ISOLATOR.get(env.ISOLATOR.idFromName(name));
  return isolator.fetch("http://isolator/" + name, { method: "POST", body, signal: request.signal });
}

export default {
  async fetch(request, env) {
    try {
      return await route(request, env);
    } catch (e) {
      const answer = refuse(e.status ?? 500, e.message);
      if (answer.status === 401) answer.headers.set("WWW-Authenticate", "Bearer");
      return answer;
    }
  },
};

/** Which sessions have a container. Each has its place for a time, so one whose object has been lost gives it back. */
export class Registry extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS place (name TEXT PRIMARY KEY, until INTEGER NOT NULL)");
  }

  /** Take a place, or keep it for longer. Return how many others have one, if that is too many. */
  enter(name) {
    const { sql } = this.ctx.storage;
    const now = Date.now();
    sql.exec("DELETE FROM place WHERE until < ?", now);
    const others = sql.exec("SELECT count(*) AS n FROM place WHERE name != ?", name).one().n;
    if (others >= instances(this.env)) return others;
    sql.exec("INSERT OR REPLACE INTO place VALUES (?, ?)", name, now + 2 * sleep(this.env) + START_MS);
    return 0;
  }

  leave(name) {
    this.ctx.storage.sql.exec("DELETE FROM place WHERE name = ?", name);
  }
}

/** A session: a container, until it has had no calls for some time. */
export class Isolator extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    this.registry = env.REGISTRY.get(env.REGISTRY.idFromName("all"));
    this.calls = 0;
    this.starting = null;
  }

  async fetch(request) {
    this.calls++;
    try {
      const path = new URL(request.url).pathname.split("/");
      const name = path.pop();
      if (path.length > 1) return await this.far(request, name);
      await this.keep(name);
      try {
        return await this.execute(await request.arrayBuffer(), request.signal);
      } finally {
        await this.keep(name); // it sleeps from now on
      }
    } catch (e) {
      return refuse(e.status ?? 500, e.message);
    } finally {
      this.calls--;
    }
  }

  /** Take a place for the container, and be woken when it has slept. */
  async keep(name) {
    const others = await this.registry.enter(name);
    if (others > 0) throw new Refusal(503, `there are ${others} containers already, which is the most at a time`);
    await this.ctx.storage.put("name", name);
    await this.ctx.storage.setAlarm(Date.now() + sleep(this.env));
  }

  async execute(body, signal) {
    const headers = { "Content-Type": "application/json" };
    return this.ask(await this.wake(), "/execute?session=main", { method: "POST", headers, body, signal });
  }

  /** The room is made when it is asked for, and never by who comes back to it. Its container ends with it. */
  async far(request, name) {
    const { method, headers } = request;
    if (method === "DELETE") {
      await this.end(name);
      return Response.json({ success: true });
    }
    if (method === "GET" && !this.ctx.container?.running) throw new Refusal(410, "the room is gone");
    await this.keep(name);
    const answer = await this.ask(await this.wake(), "/far?session=" + name, { method, headers: Object.fromEntries(headers) });
    if (method === "POST" && !answer.ok && answer.status !== 409) await this.end(name);
    return answer;
  }

  /** Ask what listens in the container. */
  async ask(token, path, init) {
    const headers = { ...init.headers, Authorization: "Bearer " + token };
    let answer;
    try {
      answer = await this.ctx.container.getTcpPort(PORT).fetch("http://container" + path, { ...init, headers });
    } catch (e) {
      if (init.signal?.aborted || (await this.listens(START_MS).catch(() => false))) throw e;
      // Its end may not have been told yet.
      const { container, storage } = this.ctx;
      if (container.running && (await storage.get("token")) === token) await container.destroy();
      throw new Error("the container has ended before the code did; its memory may have been used up");
    }
    if (answer.status !== 401) return answer;
    await this.ctx.container.destroy();
    throw new Error("the container did not know its token; the next call gets another one");
  }

  /** Whether the container answers within so many milliseconds. Throws if nobody does. */
  async listens(within) {
    const answer = await this.ctx.container.getTcpPort(PORT).fetch("http://container/health", { signal: AbortSignal.timeout(within) });
    await answer.arrayBuffer();
    return answer.ok;
  }

  /** How many far rooms live in the container. They end there when nobody has come back in time. */
  async rooms() {
    const token = await this.ctx.storage.get("token");
    if (!token || !this.ctx.container?.running) return 0;
    try {
      return (await (await this.ask(token, "/far", { method: "GET" })).json()).rooms;
    } catch {
      return 0;
    }
  }

  /** Have the container run. Return the token of what listens there. */
  async wake() {
    if (!this.ctx.container) throw new Error("there is no container engine here");
    this.starting ??= this.start().finally(() => (this.starting = null));
    return this.starting;
  }

  async start() {
    const { container, storage } = this.ctx;
    let token = await storage.get("token");
    if (container.running && token) return token;
    if (container.running) await container.destroy();
    // Code in the container cannot use the port: it does not know this.
    token = crypto.randomUUID() + crypto.randomUUID();
    await storage.put("token", token);
    container.start({ enableInternet: false, env: { CLOCHE_FAR_TOKEN: token } });
    let ended = null;
    container.monitor().then(
      () => (ended = new Error("it has ended")),
      (e) => (ended = e),
    );
    for (const until = Date.now() + START_MS; ; await scheduler.wait(50)) {
      if (ended) throw new Error("the container did not start: " + ended.message);
      try {
        if (await this.listens(START_MS)) return token;
      } catch (e) {
        if (Date.now() > until) throw new Error("the container did not start in time: " + e.message);
      }
    }
  }

  /** It has slept, unless it is in use. No call comes in between. */
  async alarm() {
    await this.ctx.blockConcurrencyWhile(async () => {
      const name = await this.ctx.storage.get("name");
      if (this.calls > 0 || (await this.rooms()) > 0) await this.keep(name);
      else await this.end(name);
    });
  }

  async end(name) {
    if (this.ctx.container?.running) await this.ctx.container.destroy();
    await this.ctx.storage.deleteAlarm();
    await this.ctx.storage.deleteAll();
    await this.registry.leave(name);
  }
}
