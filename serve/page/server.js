// This file shows the server's current state: its metrics each second while
// they are in sight, and the kernels of the plan.

const SECONDS_SHOWN = 300;

// Figures on cards; `of` gives the value of a sample as text.
const CARDS = [
  ["Running", "requests", (s) => whole(s.running)],
  ["Waiting", "requests", (s) => whole(s.waiting)],
  ["Cache", "of the KV cache in use", (s) => percent(s.cache)],
  ["Prefix hits", "of prompt tokens, since the start", (s) => (s.queries ? percent(s.hits / s.queries) : "\u2013")],
  ["Preempted", "requests, since the start", (s) => whole(s.preemptions)],
];

// Lines over time: {title, unit, series: [[name, value of a sample]], most}.
const CHARTS = [
  { title: "Tokens a second", unit: "tokens/s", series: [["answers", (s) => s.answerRate]], least: 10 },
  { title: "Prompt tokens a second", unit: "tokens/s", series: [["prompts", (s) => s.promptRate]], least: 10 },
  { title: "Requests", unit: "", series: [["running", (s) => s.running], ["waiting", (s) => s.waiting]], least: 4 },
  { title: "KV cache in use", unit: "%", series: [["in use", (s) => 100 * s.cache]], least: 100 },
];

const KERNEL_COLUMNS = [
  ["Kernel"], ["Kind"], ["Launches", "number"], ["Memory", "number"], ["Arithmetic", "number"],
  ["Time", "number"], ["Share of the step", "number"], ["Share of the limit", "number"],
];

// Metrics are asked for each second, kernels each so many seconds.
const KERNELS_EVERY = 5;

const LIMIT = "The limit is the time that a launch's bytes or operations take at the speeds measured on this device.";

class ServerView {
  constructor(host) {
    this.host = host;
    this.samples = [];
    this.cards = CARDS.map(([name, hint]) => ({ value: el("strong"), name, hint }));
    this.charts = CHARTS.map((chart) => ({ ...chart, plot: el("div", { class: "plot" }) }));
    this.kernels = el("div", { class: "kernels" });
    this.problem = el("p", { class: "error", role: "alert", hidden: "" });
    const card = ({ name, hint, value }) => el("div", {}, el("dt", {}, name), el("dd", {}, value, el("small", {}, hint)));
    const figure = ({ title, plot }) => el("figure", {}, el("figcaption", {}, title), plot);
    host.append(
      el("h2", {}, "Server"),
      this.problem,
      el("dl", { class: "cards" }, ...this.cards.map(card)),
      el("div", { class: "charts" }, ...this.charts.map(figure)),
      el("h2", {}, "Kernels of the plan"),
      this.kernels,
    );
  }

  // Begins or ends to ask the server.
  show(visible) {
    clearInterval(this.timer);
    if (!visible) return;
    this.ticks = 0;
    this.samples = [];
    this.timer = setInterval(() => this.tick(), 1000);
    this.tick();
  }

  async tick() {
    if (document.hidden || this.asking) return;
    this.asking = true;
    try {
      const model = byId("model").value;
      if (this.samples.length === 0) await this.addHistory(model);
      const text = await (await request("metrics")).text();
      this.add(parseMetrics(text, model));
      if (this.ticks++ % KERNELS_EVERY === 0) await this.showKernels();
      this.problem.hidden = true;
    } catch (error) {
      this.problem.textContent = error.message;
      this.problem.hidden = false;
    }
    this.asking = false;
  }

  // Adds what the server kept of the time before.
  async addHistory(model) {
    const query = `v1/llamac/history?model=${encodeURIComponent(model)}`;
    const { seconds_ago: ages, figures } = await (await request(query)).json();
    const now = performance.now() / 1000;
    ages.forEach((age, i) => {
      const metrics = Object.entries(figures).map(([name, values]) => [name, values[i]]);
      this.addSample(Object.fromEntries(metrics), now - age);
    });
  }

  add(metrics) {
    const sample = this.addSample(metrics, performance.now() / 1000);
    CARDS.forEach(([, , of], i) => (this.cards[i].value.textContent = of(sample)));
    for (const chart of this.charts) chart.plot.replaceChildren(...drawChart(chart, this.samples));
  }

  addSample(metrics, time) {
    const value = (name) => metrics[`vllm:${name}`] ?? 0;
    const before = this.samples.at(-1);
    const sample = {
      time,
      running: value("num_requests_running"),
      waiting: value("num_requests_waiting"),
      cache: value("kv_cache_usage_perc"),
      answers: value("generation_tokens_total"),
      prompts: value("prompt_tokens_total"),
      queries: value("prefix_cache_queries_total"),
      hits: value("prefix_cache_hits_total"),
      preemptions: value("num_preemptions_total"),
    };
    const rate = (name) => (before ? Math.max(0, sample[name] - before[name]) / (sample.time - before.time) : null);
    sample.answerRate = rate("answers");
    sample.promptRate = rate("prompts");
    this.samples = [...this.samples, sample].filter(({ time }) => time > sample.time - SECONDS_SHOWN);
    return sample;
  }

  // A model was chosen.
  restart() {
    if (!this.host.hidden) this.show(true);
  }

  async showKernels() {
    const model = byId("model").value;
    try {
      const answer = await (await request(`v1/llamac/kernels?model=${encodeURIComponent(model)}`)).json();
      this.kernels.replaceChildren(...kernelTable(answer));
    } catch (error) {
      this.kernels.replaceChildren(el("p", { class: "quiet" }, `The server does not say: ${error.message}`));
    }
  }
}

// The least of 1, 2 and 5 times powers of ten that is no less than `value`.
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((mark) => mark >= value);
}

// A chart of the last minutes, the present at its right end.
function drawChart({ title, unit, series, least }, samples) {
  const last = samples.at(-1);
  const most = Math.max(least, ...series.flatMap(([, of]) => samples.map(of)));
  const top = most > least ? roundUp(most) : least;
  const x = ({ time }) => (SECONDS_SHOWN - last.time + time).toFixed(1);
  const y = (value) => (100 - (100 * value) / top).toFixed(2);
  const lines = series.map(([, of], i) => {
    const known = samples.filter((sample) => of(sample) !== null);
    return svg("polyline", { class: `line line-${i}`, points: known.map((s) => `${x(s)},${y(of(s))}`).join(" ") });
  });
  const text = (value) => (value < 10 && value % 1 ? value.toFixed(1) : whole(value));
  const now = series.map(([name, of]) => [name, `${text(of(last))} ${unit}`.trim()]);
  const spoken = `${title}: ${now.map(([name, value]) => `${name} ${value}`).join(", ")} now`;
  const grid = svg("path", { class: "grid", d: [0, 50, 100].map((height) => `M0 ${height}H${SECONDS_SHOWN}`).join("") });
  const key = ([name, value], i) => el("span", { class: `key-${i}` }, now.length > 1 ? `${name} ` : "", el("strong", {}, value));
  return [
    el("span", { class: "top" }, text(top)),
    svg("svg", { viewBox: `0 0 ${SECONDS_SHOWN} 100`, preserveAspectRatio: "none", role: "img", "aria-label": spoken }, grid, ...lines),
    el("p", { class: "now" }, ...now.map(key)),
    el("p", { class: "ends" }, el("span", {}, `${SECONDS_SHOWN / 60} minutes ago`), el("span", {}, "now")),
  ];
}

function kernelTable({ device, kernels }) {
  const orNothing = (value, show) => (value === null || value === undefined ? "\u2013" : show(value));
  const rows = kernels.map((kernel) => [
    el("code", {}, kernel.name),
    kernel.kind,
    whole(kernel.launches),
    bytes(kernel.bytes),
    flops(kernel.flops),
    orNothing(kernel.seconds, microseconds),
    orNothing(kernel.share_of_step, (share) => shareBar(share, 60)),
    orNothing(kernel.share_of_limit, (share) => shareBar(share, 60)),
  ]);
  const isTimed = kernels.some((kernel) => kernel.seconds !== null);
  const isWhole = kernels.every((kernel) => kernel.share_of_limit !== null);
  const step = isTimed ? "The last step that was timed" : "A step of one token, none having been timed yet";
  return [
    el("p", { class: "quiet" }, `${step}, on ${device}. ${LIMIT}`),
    isWhole ? null : el("p", { class: "quiet" }, "A dash stands where nothing was measured yet."),
    table(null, KERNEL_COLUMNS, rows),
  ].filter((node) => node);
}
