// Reads single values off the charts, by pointer or arrow keys. The curves themselves come from the server.

const WINDOW_S = 900;
const UNKNOWN = "–";

let points = JSON.parse(document.body.dataset.points);

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

const ago = (s) => (s < 60 ? `${Math.round(s)} s ago` : `${Math.floor(s / 60)} min ${Math.round(s % 60)} s ago`);
const seconds = (s) => (s === null ? UNKNOWN : s < 1 ? `${whole.format(s * 1000)} ms` : `${s.toFixed(2)} s`);

// A point is [seconds before the end, cached/s, computed/s, hit TTFT, miss TTFT].
const SENTENCES = {
  tokens: ([s, cached, computed]) => `${ago(s)}: ${whole.format(cached)} cached, ${whole.format(computed)} computed a second`,
  ttft: ([s, , , hit, miss]) => `${ago(s)}: hit ${seconds(hit)}, miss ${seconds(miss)}`,
};
const HAS_VALUE = { tokens: () => true, ttft: ([, , , hit, miss]) => hit !== null || miss !== null };

const charts = [...document.querySelectorAll("[data-chart]")].map((plot) => {
  const name = plot.dataset.chart;
  const svg = plot.querySelector("svg");
  const cross = plot.querySelector(".cross");
  const readout = document.querySelector(`[data-readout="${name}"]`);
  const sentence = readout.nextElementSibling;
  let chosen = null; // seconds before the end, or null

  const candidates = () => points.filter(HAS_VALUE[name]);

  function draw() {
    const near = chosen === null ? null : candidates().reduce(
      (best, point) => (best && Math.abs(best[0] - chosen) <= Math.abs(point[0] - chosen) ? best : point), null);
    readout.hidden = near === null;
    sentence.hidden = near !== null;
    cross.setAttribute("visibility", near ? "visible" : "hidden");
    if (!near) return;
    for (const end of ["x1", "x2"]) cross.setAttribute(end, String(WINDOW_S - near[0]));
    readout.textContent = SENTENCES[name](near);
  }

  function choose(secondsAgo) {
    chosen = secondsAgo;
    draw();
  }

  function step(direction) {
    const all = candidates();
    if (!all.length) return;
    const at = chosen === null ? all.length - 1 : all.findIndex((point) => point[0] <= chosen) + direction;
    choose(all[Math.min(Math.max(at, 0), all.length - 1)][0]);
  }

  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    choose((1 - (event.clientX - box.left) / box.width) * WINDOW_S);
  });
  svg.addEventListener("pointerleave", () => choose(null));
  plot.addEventListener("blur", () => choose(null));
  plot.addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft") step(-1);
    else if (event.key === "ArrowRight") step(1);
    else if (event.key === "Escape") choose(null);
    else return;
    event.preventDefault();
  });
  return { draw };
});

export function showPoints(next) {
  points = next;
  for (const chart of charts) chart.draw();
}
