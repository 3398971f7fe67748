// Keeps the page as it is on the other side, sorts and filters. Words of clusters become text,
// never markup.
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
  // "v1.9" is before "v1.35".
  const collator = new Intl.Collator("en", { numeric: true });
  const order = (a, b) => (typeof a === "number" ? (a < b ? -1 : a > b ? 1 : 0) : collator.compare(a, b));
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
  const sorting = { by: "name", down: false };
  const choice = document.querySelector("#sort select");
  function arrange() {
    const of = key[sorting.by] || ((row) => field(row, sorting.by));
    const keyed = [...rows.children].map((row) => [of(row), row.id, row]);
    keyed.sort(([a, x], [b, y]) => (order(a, b) || order(x, y)) * (sorting.down ? -1 : 1));
    // What is in its place stays there: a row that is moved loses the focus.
    keyed.forEach(([, , row], place) => {
      if (rows.children[place] !== row) rows.insertBefore(row, rows.children[place] || null);
    });
  }
  function sort(by, down) {
    Object.assign(sorting, { by, down });
    choice.value = by;
    for (const head of document.querySelectorAll("#clusters thead th")) head.removeAttribute("aria-sort");
    const head = document.querySelector(`#clusters [data-sort="${by}"]`)?.closest("th");
    head?.setAttribute("aria-sort", down ? "descending" : "ascending");
    arrange();
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
      const by = button.dataset.sort;
      if (by) sort(by, sorting.by === by && !sorting.down);
      if (button.dataset.show) {
        const state = button.dataset.show;
        button.setAttribute("aria-pressed", shown.delete(state) ? "false" : (shown.add(state), "true"));
        choose();
      }
    });
    filter.addEventListener("input", choose);
    choice.addEventListener("change", () => sort(choice.value, false));
    if (choice.value !== sorting.by) sort(choice.value, false); // as the browser remembers it
    if (filter.value) choose();
  }

  // === Changes ===

  function add(name) {
    const row = byId("new").content.firstElementChild.cloneNode(true);
    row.id = "c-" + name;
    const link = row.querySelector("a");
    link.textContent = name;
    link.href = "clusters/" + encodeURIComponent(name);
    rows.append(row); // and then to its place
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
  const CLOCK = { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false };
  const DATE = { year: "numeric", month: "2-digit", day: "2-digit", ...CLOCK };
  function times(place) {
    for (const time of place.querySelectorAll("time")) {
      time.title = time.textContent;
      const then = new Date(time.dateTime), is_today = then.toDateString() === new Date().toDateString();
      time.textContent = then.toLocaleString([], is_today ? CLOCK : DATE);
    }
  }
  // A part in which somebody selects text waits until they have done so.
  const held = new Map();
  function put(id) {
    const place = byId(id), selection = getSelection();
    if (place && !selection.isCollapsed && place.contains(selection.anchorNode)) return;
    const markup = held.get(id);
    held.delete(id);
    if (!place) return;
    place.innerHTML = markup; // from the program, which escapes what others say
    times(place);
  }
  document.addEventListener("selectionchange", () => {
    for (const id of [...held.keys()]) put(id);
  });
  function apply(patch) {
    const news = [];
    // A cluster may be called "constructor".
    const known = (name) => Object.hasOwn(patch.clusters || {}, name);
    if (patch.whole) patch.gone = [...rows.children].map((row) => row.id.slice(2)).filter((name) => !known(name));
    for (const [name, fields] of Object.entries(patch.clusters || {})) change(name, fields, news);
    for (const name of patch.gone || []) {
      byId("c-" + name)?.remove();
      news.push(`${name} is gone`);
    }
    for (const [id, markup] of Object.entries(patch.parts || {})) {
      held.set(id, markup);
      put(id);
    }
    if (rows && (patch.clusters || patch.gone)) {
      arrange();
      choose();
    }
    if (news.length) {
      const rest = news.length - MOST_SAID;
      said.textContent = news.slice(0, MOST_SAID).join(", ") + (rest > 0 ? `, and ${rest} more changes` : "");
    }
  }

  const state = (text, on) => {
    if (live.textContent !== text) live.textContent = text;
    live.className = on ? "on" : "off";
  };
  const ENDED = "ended: run `kubectl clusters dashboard` again, and open the address that it prints";
  const REFUSED = "not live: too many pages are open, or the program has ended";
  let events = null, ended = false;
  function close() {
    events?.close();
    events = null;
  }
  // For good: whoever listens there from now on may be another user of this machine.
  function end() {
    ended = true;
    close();
    state(ENDED, false);
  }
  function connect() {
    const stream = events = new EventSource(document.body.dataset.events);
    let known = false;
    stream.onmessage = (event) => {
      const patch = JSON.parse(event.data);
      // What comes goes into this page as markup: only from the program that made it, which alone
      // knows its seal.
      known ||= patch.seal === document.body.dataset.seal;
      if (!known) return end();
      state("live", true);
      apply(patch);
      document.body.dataset.changes = Number(document.body.dataset.changes || 0) + 1;
    };
    stream.onerror = () => {
      if (known || stream.readyState !== EventSource.CLOSED) return end();
      // It was answered, by something else than a stream: that may pass.
      close();
      state(REFUSED, false);
    };
  }
  // A browser has six connections to a server for all its tabs: those that nobody sees give theirs
  // back.
  document.addEventListener("visibilitychange", () => {
    close();
    if (!document.hidden && !ended) connect();
  });
  if (!document.hidden) connect();
  times(document);
})();
