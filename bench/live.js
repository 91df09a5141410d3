// In every page that bench_live.py opens, before the page's own scripts: `bench` measures what is on the screen.
// Times are milliseconds since 1970, of the clock that the platform's processes have too.

const clock = () => performance.timeOrigin + performance.now();
const frame = () => new Promise((done) => requestAnimationFrame(() => done(clock())));
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
const bench = { records: 0, resyncs: 0, painted: [] };

// How many records the page is sent.
window.WebSocket = class extends WebSocket {
  constructor(...given) {
    super(...given);
    this.addEventListener("message", ({ data }) => {
      if (data.startsWith('{"type":"records"')) bench.records += data.split('{"seq":').length - 1;
      else if (data.startsWith('{"type":"resync"')) bench.resyncs += 1;
    });
  }
};

addEventListener("click", (event) => sessionStorage.setItem("bench", performance.timeOrigin + event.timeStamp), true);

// From the last click, in the page before, to the frame after a record stands on this one.
bench.first = async () => {
  while (!document.querySelector("#pane [data-seq]")) await frame();
  return await frame() - Number(sessionStorage.getItem("bench"));
};

// Notes in `painted` for each permit that comes: its seq and the frame after its row and its node are there.
bench.follow = async () => {
  const rows = () => [...document.querySelectorAll("#records li")];
  const waiting = new Map();
  let last = Number(rows()[0].dataset.seq);
  for (;;) {
    await frame();
    const done = [];
    for (const row of rows()) {
      if (Number(row.dataset.seq) <= last) break;
      if (row.querySelector(".kind").textContent !== "permit") continue;
      waiting.set(Number(row.dataset.seq), row.querySelector(".where span").textContent);
    }
    last = Number(rows()[0].dataset.seq);
    for (const [seq, task] of waiting) {
      if (!document.querySelector(`#run-graph .node[data-task="${task}"][data-state]`)) continue;
      waiting.delete(seq);
      done.push(seq);
    }
    if (done.length) frame().then((at) => bench.painted.push(...done.map((seq) => [seq, at])));
  }
};

// The same change made here: how long until the frame after it.
bench.touch = async (times) => {
  const took = [], list = document.getElementById("records");
  const node = document.querySelector("#run-graph .node");
  for (let turn = 0; turn < times; turn += 1) {
    await pause(40 + 7 * (turn % 5));
    const began = clock();
    list.prepend(list.firstElementChild.cloneNode(true));
    list.lastElementChild.remove();
    node.dataset.state = turn % 2 ? "running" : "done";
    await frame();
    took.push(await frame() - began);
  }
  return took;
};

// Over some seconds: frames and records a second, and the longest frame.
bench.frames = async (seconds) => {
  const began = clock(), first = bench.records;
  let frames = 0, worst = 0, before = began;
  while (before < began + 1000 * seconds) {
    const now = await frame();
    frames += 1;
    worst = Math.max(worst, now - before);
    before = now;
  }
  const took = (before - began) / 1000;
  return { frames: frames / took, worst, records: (bench.records - first) / took, resyncs: bench.resyncs };
};

window.bench = bench;
