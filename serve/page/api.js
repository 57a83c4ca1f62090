// The server's interface: OpenAI's, and what llamac adds to it.

// The key is kept for this window, or, if asked, until it is removed.
const key = {
  get: () => kept("key", "sessionStorage") || kept("key") || "",
  isRemembered: () => kept("key") !== null,
  set(value, remember) {
    keep("key", value && !remember ? value : null, "sessionStorage");
    keep("key", value && remember ? value : null);
  },
};

class ApiError extends Error {
  constructor(message, status, retryAfter) {
    super(message);
    this.status = status; // 0 where no answer came.
    this.retryAfter = retryAfter; // In seconds, or null.
  }
}

// The answer to a request, which has a good status; else throws an ApiError.
async function request(path, options = {}) {
  const headers = { ...options.headers };
  if (key.get()) headers.Authorization = `Bearer ${key.get()}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server does not answer. Is it running?", 0, null);
  }
  if (response.ok) return response;
  let message = `The server answered with status ${response.status}.`;
  try {
    message = (await response.json()).error.message || message;
  } catch {
    // It was no JSON: the status has to do.
  }
  throw new ApiError(message, response.status, Number(response.headers.get("Retry-After")) || null);
}

// The models that are served: [{id, max_model_len, ...}].
async function listModels() {
  return (await (await request("v1/models")).json()).data;
}

// The parts of an answer as the server sends them.
async function* streamCompletion(body, signal) {
  const headers = { "Content-Type": "application/json" };
  const response = await request("v1/chat/completions", { method: "POST", headers, body: JSON.stringify(body), signal });
  for await (const line of linesOf(response)) {
    if (!line.startsWith("data:")) continue;
    const data = line.slice(5).trim();
    if (data === "[DONE]") return;
    const part = JSON.parse(data);
    if (part.error) throw new ApiError(part.error.message, 0, null);
    yield part;
  }
  throw new ApiError("The answer was cut off: the server closed the connection.", 0, null);
}

async function* linesOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      yield* lines;
    }
  } catch (error) {
    // A connection that breaks ends the lines as one that is closed does.
    if (error.name === "AbortError") throw error;
  } finally {
    reader.cancel().catch(() => {});
  }
}

// The values of a page of metrics in Prometheus' text format, by name; those of other
// models than `model` are left out.
function parseMetrics(text, model) {
  const values = {};
  for (const line of text.split("\n")) {
    const match = /^([\w:]+)(?:\{(.*)\})? ([^ ]+)/.exec(line);
    if (!match) continue;
    const [, name, labels = "", value] = match;
    const of = /model_name="((?:[^"\\]|\\.)*)"/.exec(labels);
    if (!of || of[1].replace(/\\(.)/g, "$1") === model) values[name] = (values[name] || 0) + Number(value);
  }
  return values;
}
