// Keeps the page as it is on the other side, sorts and filters. Words of clusters become text, never markup.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const all = byId("clusters");
  const rows = all && (all.tBodies ? all.tBodies[0] : all);
  const said = byId("said"), live = byId("live"), filter = byId("filter");
  const MOST_SAID = 3; // changes told one by one to who listens to the page
  document.documentElement.classList.add("js");

  // What is in a field of a cluster.
  const field = (row, name) => {
    const place = row.querySelector(`[data-f="${name}"]`);
    return place ? place.textContent : "";
  };

  // === Sort and filter ===

  const UNITS = { ms: 1, s: 1000, m: 60e3, h: 3600e3, d: 86400e3 };
  const STATES = ["bad", "warning", "unknown", "good"];
  const key = {
    name: (row) => row.id,
    status: (row) => STATES.indexOf(row.dataset.state) + field(row, "status"),
    latency: (row) => span(field(row, "latency")),
    expires: (row) => span(field(row, "expires")),
  };
  function span(text) {
    const found = /^([\d.]+) ?([a-z]+)$/.exec(text);
    if (found) return Number(found[1]) * UNITS[found[2]];
    return text === "expired" ? -1 : Infinity;
  }
  function sort(button) {
    const head = button.closest("th"), name = button.dataset.sort;
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const of = key[name] || ((row) => field(row, name));
    const keyed = [...rows.children].map((row) => [of(row), row.id, row]);
    const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
    keyed.sort(([a, x], [b, y]) => (order(a, b) || order(x, y)) * (down ? -1 : 1));
    rows.append(...keyed.map(([, , row]) => row));
  }
  const shown = new Set();
  function matches(row, words) {
    if (shown.size && !shown.has(row.dataset.state)) return false;
    if (!words.length) return true;
    const text = [row.id.slice(2), ...["alias", "status", "version", "labels", "reason"].map((name) => field(row, name))];
    const whole = text.join(" ").toLowerCase();
    return words.every((word) => whole.includes(word));
  }
  function choose() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let some = false;
    for (const row of rows.children) some = !(row.hidden = !matches(row, words)) || some;
    const none = byId("none");
    none.hidden = some;
    if (!some) none.textContent = "No cluster to show.";
  }
  if (all) {
    document.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      if (button.dataset.sort) sort(button);
      if (button.dataset.show) {
        const state = button.dataset.show;
        button.setAttribute("aria-pressed", shown.delete(state) ? "false" : (shown.add(state), "true"));
        choose();
      }
    });
    filter.addEventListener("input", choose);
    if (filter.value) choose();
  }

  // === Changes ===

  function add(name) {
    const row = byId("new").content.firstElementChild.cloneNode(true);
    row.id = "c-" + name;
    const link = row.querySelector("a");
    link.textContent = name;
    link.href = "clusters/" + encodeURIComponent(name);
    const next = [...rows.children].find((other) => other.id > row.id);
    rows.insertBefore(row, next || null);
    return row;
  }
  function change(name, fields, news) {
    const row = byId("c-" + name) || add(name);
    for (const [field, words] of Object.entries(fields)) {
      if (field === "state") {
        row.dataset.state = words;
        continue;
      }
      const place = row.querySelector(`[data-f="${field}"]`);
      if (place) place.textContent = words;
      if (field === "status" && words !== "Asking") news.push(`${name} is ${words}`);
    }
  }
  const ZONE = { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false };
  function times(place) {
    for (const time of place.querySelectorAll("time")) {
      time.title = time.textContent;
      time.textContent = new Date(time.dateTime).toLocaleTimeString([], ZONE);
    }
  }
  function apply(patch) {
    const news = [];
    for (const [name, fields] of Object.entries(patch.clusters || {})) change(name, fields, news);
    for (const name of patch.gone || []) {
      byId("c-" + name)?.remove();
      news.push(`${name} is gone`);
    }
    for (const [id, markup] of Object.entries(patch.parts || {})) {
      const place = byId(id);
      if (!place) continue;
      place.innerHTML = markup; // from the program, which escapes what others say
      times(place);
    }
    if (rows && (patch.clusters || patch.gone)) choose();
    if (news.length) {
      const rest = news.length - MOST_SAID;
      said.textContent = news.slice(0, MOST_SAID).join(", ") + (rest > 0 ? `, and ${rest} more changes` : "");
    }
  }

  const events = new EventSource(document.body.dataset.events);
  const state = (text, on) => {
    if (live.textContent !== text) live.textContent = text;
    live.className = on ? "on" : "off";
  };
  events.onopen = () => state("live", true);
  events.onmessage = (event) => {
    apply(JSON.parse(event.data));
    document.body.dataset.changes = Number(document.body.dataset.changes || 0) + 1;
  };
  events.onerror = () => state("not connected: is `kubectl clusters dashboard` still running?", false);
  times(document);
})();
