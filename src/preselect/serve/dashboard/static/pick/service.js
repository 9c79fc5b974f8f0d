// The service's own words, for any page: make a preselector, decide, tell what was picked, ask what is believed.
// Copy this file. Everything goes through the public interface, which /openapi.json describes.

async function send(method, path, body) {
  const options = { method, headers: {} };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const answer = await fetch(path, options);
  const found = answer.status === 204 ? null : await answer.json();
  if (!answer.ok) throw Object.assign(new Error(found.detail), { status: answer.status });
  return found;
}

export class Preselector {
  constructor(name) {
    this.name = name;
    this.path = `/v1/preselectors/${encodeURIComponent(name)}`;
  }

  // The same preselector again changes nothing.
  create(definition) { return send("PUT", this.path, definition); }

  // The same `request_id` again gives the same decision, so a request may be repeated.
  decide(request) { return send("POST", `${this.path}/decisions`, request); }

  // `winner` is null if none of them was picked.
  tell(decision, winner) { return send("PUT", `/v1/decisions/${encodeURIComponent(decision.id)}/outcome`, { winner }); }

  weights() { return send("GET", `${this.path}/weights`); }

  explain(id) { return send("GET", `/v1/decisions/${encodeURIComponent(id)}`); }

  async rounds() {
    const found = [];
    for (let after = 0; after !== null;) {
      const page = await send("GET", `${this.path}/rounds?after=${after}&limit=1000`);
      found.push(...page.rounds);
      after = page.next;
    }
    return found;
  }
}

export const read = (path) => send("GET", path);
