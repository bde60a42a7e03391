// SPDX-License-Identifier: Apache-2.0
// node srt_proxy.mjs PACKAGE HOST: starts the proxy of srt for one host, and prints its port and what a
// client authenticates with.
const { SandboxManager } = await import(process.argv[2] + "/dist/index.js");
await SandboxManager.initialize({
	network: { allowedDomains: [process.argv[3]], deniedDomains: [] },
	filesystem: { denyRead: [], allowWrite: [], denyWrite: [] },
});
const user = Buffer.from("srt:" + SandboxManager.getProxyAuthToken()).toString("base64");
console.log(SandboxManager.getProxyPort() + " " + user);
setInterval(() => {}, 1 << 30);
