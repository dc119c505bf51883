/* Calls to the server: JSON in, JSON out, problems (RFC 9457) as errors. */

export class ApiProblem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `The server answered ${status}.`);
    this.status = status;
    this.slug = String(body.type || "").split("/").pop();
    this.retryAfter = body.retryAfter;
  }
}

export async function call(method, path, { query, body } = {}) {
  const given = Object.entries(query || {}).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const address = given.length ? `${path}?${new URLSearchParams(given)}` : path;
  let response;
  try {
    response = await fetch(address, {
      method,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new ApiProblem(0, { detail: "The server cannot be reached. Is `sumi-ripple serve` still running?" });
  }
  if (response.status === 204) return null;
  let content = {};
  try {
    content = await response.json();
  } catch {
    if (response.ok) throw new ApiProblem(response.status, { detail: "The server's answer cannot be read." });
  }
  if (!response.ok) throw new ApiProblem(response.status, { ...content, retryAfter: Number(response.headers.get("Retry-After")) || null });
  return content;
}

/** The text of a file of the server. */
export async function getText(path) {
  const response = await fetch(path).catch(() => null);
  if (!response) throw new ApiProblem(0, { detail: "The server cannot be reached. Is `sumi-ripple serve` still running?" });
  if (!response.ok) throw new ApiProblem(response.status, await response.json().catch(() => ({})));
  return response.text();
}

export const get = (path, query) => call("GET", path, { query });
export const post = (path, body) => call("POST", path, { body });
