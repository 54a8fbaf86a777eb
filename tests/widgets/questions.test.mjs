import assert from "node:assert/strict";
import { test } from "node:test";
import { Kernel } from "../../widgets/model/questions.js";

class Model {
  sent = [];
  heard = new Map();
  constructor(state = {}) { this.state = state; }
  get(name) { return this.state[name]; }
  on(name, listener) { this.heard.set(name, listener); }
  off(name, listener) { if (this.heard.get(name) === listener) this.heard.delete(name); }
  send(question) { this.sent.push(question); }
  answer(number, message, buffers) { this.heard.get("msg:custom")({ id: this.sent[number].id, ...message }, buffers); }
}

function start(model, variant = "") {
  const lost = [];
  return [new Kernel(model, () => variant, (reason) => lost.push(reason)), lost];
}

test("answers find their questions, whatever their order", async () => {
  const model = new Model();
  const [kernel] = start(model, "2");
  const words = [];
  const first = kernel.ask({ do: "run", backend: "emulator" }, (text) => words.push(text));
  const second = kernel.ask({ do: "fork", options: {}, variant: "1" });
  assert.deepEqual(model.sent.map((one) => [one.do, one.variant]), [["run", "2"], ["fork", "1"]]);
  assert.notEqual(model.sent[0].id, model.sent[1].id);
  model.answer(1, { state: "done", variant: "3" }, ["bytes"]);
  model.answer(0, { state: "progress", text: "half" });
  model.answer(0, { state: "done", html: "x" });
  assert.deepEqual([(await first).html, (await second).variant, (await second).buffer, words], ["x", "3", "bytes", ["half"]]);
});

test("a failure is thrown, and words that come later are nobody's", async () => {
  const model = new Model();
  const [kernel] = start(model);
  const words = [];
  const asked = kernel.ask({ do: "check" }, (text) => words.push(text));
  model.answer(0, { state: "failed", error: { kind: "UsageError" } });
  await assert.rejects(asked, { kind: "UsageError" });
  model.answer(0, { state: "progress", text: "late" });
  assert.deepEqual(words, []);
});

test("a kernel that is restarted answers nothing any more", async () => {
  const model = new Model();
  const [kernel, lost] = start(model);
  const waits = kernel.ask({ do: "check" });
  model.heard.get("comm_live_update")();
  await assert.rejects(waits, { kind: "KernelGone" });
  await assert.rejects(kernel.ask({ do: "check" }), { kind: "KernelGone" });
  assert.equal(model.sent.length, 1);
  assert.match(lost[0], /restarted/);
  assert.equal(kernel.missing("run"), lost[0]);
});

test("a kernel that is only busy goes on", () => {
  const listeners = [];
  const model = new Model();
  const signal = { connect: (one) => listeners.push(one), disconnect: (one) => listeners.splice(listeners.indexOf(one), 1) };
  model.widget_manager = { kernel: { statusChanged: signal, connectionStatusChanged: signal, disposed: signal } };
  const [kernel, lost] = start(model);
  assert.equal(listeners.length, 3);
  for (const status of ["busy", "idle", "connected"]) listeners[0](null, status);
  assert.deepEqual([kernel.live, lost], [true, []]);
  listeners[0](null, "autorestarting");
  assert.equal(kernel.live, false);
  kernel.close();
  assert.deepEqual([listeners.length, model.heard.size], [0, 0]);
});

test("a kernel that cannot be reached for a while comes back", async () => {
  const listeners = [];
  const model = new Model();
  model.widget_manager = { kernel: { connectionStatusChanged: { connect: (one) => listeners.push(one), disconnect: () => {} } } };
  const [kernel, lost] = start(model);
  const waits = kernel.ask({ do: "run" });
  listeners[0](null, "connecting");
  assert.match(kernel.missing("run"), /no connection/);
  assert.equal(kernel.missing("run"), lost[0]);
  listeners[0](null, "connected");
  assert.deepEqual([kernel.live, kernel.missing("run"), lost.length, lost[1]], [true, "", 2, ""]);
  assert.deepEqual(model.sent[1], { do: "waiting", ids: [model.sent[0].id] });
  model.answer(0, { state: "done", html: "x" });
  assert.equal((await waits).html, "x");
  for (const status of ["connecting", "connected"]) listeners[0](null, status);
  assert.equal(model.sent.length, 2);
});

test("a kernel that was shut down or is out of reach is gone", () => {
  for (const status of [undefined, "dead", "disconnected"]) {
    const listeners = [];
    const model = new Model();
    model.widget_manager = { kernel: { disposed: { connect: (one) => listeners.push(one), disconnect: () => {} } } };
    const [kernel, lost] = start(model);
    listeners[0](null, status);
    assert.deepEqual([kernel.live, lost.length], [false, 1]);
  }
});

test("what cannot be asked for has a reason", () => {
  const [kernel] = start(new Model({ missing: { check: "needs the kernel" } }));
  assert.deepEqual([kernel.missing("check"), kernel.missing("run")], ["needs the kernel", ""]);
  const [page] = start(new Model({ live: false }));
  assert.deepEqual([page.live, /no Python/.test(page.missing("run"))], [false, true]);
});
